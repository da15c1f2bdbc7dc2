// Decoding on a GPU: the same calls as on the CPU, in the device's memory.
#include "runtime/decode_on_device.h"

#include <gmock/gmock.h>

#include "nvidia_graph.h"

namespace tilewright {
namespace {

void expect_right(DecodeCall call, std::vector<int> splits) {
    OnDevice device(*gpu(), call);
    for (int count : splits) {
        std::string what = to_text(call.problem) + " page_size " + std::to_string(call.page_size) + " splits " + std::to_string(count);
        for (int run = 0; run < 2; ++run) {
            Status status = device.run(count);
            ASSERT_TRUE(status.ok()) << what << ": " << status.message();
            call.expect_right(what, true);
            if (testing::Test::HasFatalFailure()) return;
        }
    }
}

struct Case {
    const char* problem;
    std::vector<int32_t> lengths;
    std::vector<int64_t> pages;
    std::vector<int> splits;
    friend void PrintTo(const Case& c, std::ostream* out) { *out << c.problem; }
};
const std::vector<int32_t> all_kinds{1000, 0, 5, 333, 64, 1, 0, 129}, few{700, 0, 90, 101, 2};

class DecodeCases : public testing::TestWithParam<Case> {};

TEST_P(DecodeCases, IsRightDenseAndInPagesHoweverItIsSplit) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    const Case& c = GetParam();
    for (int64_t page : c.pages) expect_right(DecodeCall(c.problem, c.lengths, page, page == 64), c.splits);
}

// Up to 16 rows are decoded by warps that share the keys, more by a warpgroup; what is not aligned and float by the older instructions.
INSTANTIATE_TEST_SUITE_P(, DecodeCases, testing::Values(
    Case{"decode:hq8,hkv2,sq1,skv1000,d128,bf16,causal", all_kinds, {0, 16, 64, 256}, {0, 1, 3, 7, 100}},
    Case{"decode:hq8,hkv2,sq1,skv1000,d64,bf16", all_kinds, {0, 16, 64, 256}, {0, 1, 7}},
    Case{"decode:hq8,hkv2,sq1,skv0,d128,bf16", {0, 0}, {0}, {0, 1}},
    Case{"decode:hq2,hkv2,sq1,skv5000,d128,bf16", {5000, 4000, 4999}, {0, 16, 32}, {0, 2}},
    Case{"decode:hq4,hkv2,sq1,skv1000,d256,bf16", all_kinds, {0, 16}, {0, 5}},
    Case{"decode:hq32,hkv2,sq6,skv700,d64,bf16", few, {0, 32}, {0, 1, 9}},
    Case{"decode:hq8,hkv2,sq16,skv700,d128,bf16,causal", few, {0, 16, 128}, {0, 1, 9}},
    Case{"decode:hq8,hkv2,sq4,skv700,d128,bf16,causal", few, {0, 16}, {0, 1, 9}},
    Case{"decode:hq4,hkv1,sq16,skv700,d256,bf16,causal", few, {0, 64}, {0, 3}},
    Case{"decode:hq4,hkv2,sq3,skv700,d128,bf16,window100:2", few, {0, 64}, {0, 1, 5}},
    Case{"decode:hq4,hkv1,sq16,skv700,d64,bf16,window50:0,sink", few, {0, 16}, {1, 5}},
    Case{"decode:hq4,hkv2,sq2,skv700,d64,bf16,causal,topleft,softcap", few, {0}, {1, 5}},
    Case{"decode:hq4,hkv1,sq3,skv700,d40,dv24,bf16,sink,softcap,alibi", few, {0, 32}, {1, 9}},
    Case{"decode:hq4,hkv1,sq3,skv700,d80,dv96,bf16,bias,causal", few, {0, 16}, {1, 9}},
    Case{"decode:hq4,hkv1,sq16,skv700,d128,bf16,bias,alibi,softcap,sink", few, {0, 16}, {1, 9}},
    Case{"decode:hq4,hkv1,sq1,skv700,d37,dv21,bf16,sink", few, {0, 32}, {1, 9}},
    Case{"decode:hq4,hkv1,sq3,skv700,d37,dv21,bf16,bias,causal", few, {0, 32}, {1, 9}},
    Case{"decode:hq8,hkv2,sq1,skv1000,d64,fp32", all_kinds, {0, 16}, {1, 7}},
    Case{"decode:hq8,hkv2,sq5,skv700,d64,fp32,causal,bias", few, {0, 16}, {1, 7}}));

TEST(DecodeOnDevice, NeverMindsWhatHiddenKeysAndValuesHold) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    for (const char* text : {"decode:hq2,hkv1,sq2,skv300,d32,bf16,bias", "decode:hq4,hkv1,sq16,skv300,d64,bf16,bias", "decode:hq2,hkv1,sq2,skv300,d32,fp32,bias"}) {
        DecodeCall call(text, {300, 0, 65, 128}, 16);
        for (int64_t s = 0; s < 4; ++s)
            for (int64_t j = 3; j < call.lengths[static_cast<size_t>(s)]; j += 7)
                for (int64_t c = 0; c < call.problem.head_dim; c += 9) call.set(call.value, call.place(s, 0, j, call.problem.head_dim) + c, INFINITY), call.set(call.key, call.place(s, 0, j, call.problem.head_dim) + c, NAN);
        expect_right(std::move(call), {1, 5});
    }
}

TEST(DecodeOnDevice, ShowsInfiniteValuesToTheQueriesThatSeeThemAlone) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    for (const char* text : {"decode:hq2,hkv1,sq3,skv300,d64,bf16,causal", "decode:hq4,hkv1,sq16,skv300,d64,bf16,causal", "decode:hq2,hkv1,sq3,skv300,d64,fp32,causal", "decode:hq2,hkv1,sq3,skv300,d64,bf16,window20:0"})
        for (int64_t page : {0, 16}) {
            DecodeCall call(text, {300, 129, 2}, page);
            for (int64_t s = 0; s < 2; ++s) {
                int64_t last = call.lengths[static_cast<size_t>(s)] - 1;
                call.set(call.value, call.place(s, 0, last, 64) + 5, INFINITY), call.set(call.value, call.place(s, 0, last - 1, 64) + 33, -INFINITY);
                call.set(call.value, call.place(s, 0, last, 64) + 60, NAN);
            }
            expect_right(std::move(call), {1, 3});
        }
}

TEST(DecodeOnDevice, GivesTheSameBitsOnEveryRun) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    DecodeCall call("decode:hq32,hkv8,sq1,skv20000,d128,bf16", {20000, 0, 5, 3333}, 16);
    OnDevice device(*gpu(), call);
    for (int splits : {0, 1, 200}) {
        ASSERT_TRUE(device.run(splits).ok());
        std::vector<unsigned char> out = call.out;
        for (int run = 0; run < 40; ++run) {
            ASSERT_TRUE(device.run(splits).ok());
            ASSERT_EQ(call.out, out);
        }
    }
}

// An arrival at a barrier that is moved before the last reads shows only where two blocks share a multiprocessor, in a few rows of hundreds
// of runs, and by less than any tolerance.
TEST(DecodeOnDevice, GivesTheSameBitsWithTwoBlocksOnAMultiprocessor) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    auto opened = open_device("nvidia:0");
    ASSERT_TRUE(opened.ok());
    Device& device = **opened;
    if (device.info().arch.family != Family::sm90) GTEST_SKIP() << "these configs are for sm_90a";
    Backend& backend = **find_backend("nvidia");
    for (int64_t page : {0, 16}) {
        DecodeCall call("decode:hq32,hkv8,sq1,skv20000,d128,bf16", {20000, 0, 5, 3333}, page);
        OnDevice on_device(*gpu(), call);
        for (Config config : {Config{.block_q = 16, .block_kv = 64, .stages = 2, .workers = 2, .blocks = 2, .packs_heads = 1}, Config{.block_q = 16, .block_kv = 64, .stages = 2, .workers = 2, .blocks = 2, .packs_heads = 1, .early_kb = 64}}) {
            KernelSpec spec;
            spec.kind = KernelKind::attention_decode, spec.problem = call.problem, spec.config = config, spec.paged = page > 0;
            auto source = generate(spec, device.info().arch);
            ASSERT_TRUE(source.ok()) << source.status().message();
            auto object = backend.compile(*source, device.info().arch);
            ASSERT_TRUE(object.ok()) << object.status().message();
            auto kernel = device.load(*object, spec, *source);
            ASSERT_TRUE(kernel.ok()) << kernel.status().message();
            ASSERT_GE(*device.resident_blocks(**kernel), 2);
            auto plan = plan_decode(spec, units_for(spec, device.info().arch), 0);
            ASSERT_TRUE(plan.ok());
            kernel::DecodeParameters parameters = on_device.parameters();
            std::vector<char> zeros(static_cast<size_t>(plan->workspace_bytes()));
            use_plan(*plan, on_device.copy(zeros.data(), zeros.size()), parameters);
            std::vector<unsigned char> first;
            for (int run = 0; run < 250; ++run) {
                ASSERT_TRUE(on_device.poison().ok() && device.launch(**kernel, parameters, nullptr).ok() && on_device.fetch().ok());
                if (run == 0) first = call.out, call.expect_right("two blocks", true);
                ASSERT_EQ(call.out, first) << "run " << run << " page_size " << page;
            }
        }
    }
}

TEST(DecodeOnDevice, ReplaysACapturedCallWithOtherLengths) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    auto driver = nvidia::Driver::open("libcuda.so.1");
    auto library = SharedLibrary::open("libcuda.so.1");
    ASSERT_TRUE(driver.ok() && library.ok());
    test::GraphCalls calls;
    calls.library = *std::move(library);
    ASSERT_TRUE(calls.bind());
    nvidia::Context context = nullptr;
    ASSERT_TRUE((*driver)->retain_primary(&context, 0).ok());
    DecodeCall call("decode:hq8,hkv2,sq1,skv2000,d128,bf16", {2000, 2000, 2000, 2000}, 32);
    OnDevice device(*gpu(), call);
    ASSERT_TRUE(device.run(0).ok());  // compiled, as it must be before a capture
    Status done = nvidia::in_context(**driver, context, [&]() -> Status {
        nvidia::Stream stream = nullptr;
        test::Graph graph = nullptr;
        test::GraphExec exec = nullptr;
        TILEWRIGHT_RETURN_IF_ERROR((*driver)->create_stream(&stream, nvidia::stream_nonblocking));
        EXPECT_EQ(calls.begin(stream, 0), 0);
        for (int i = 0; i < 3; ++i) TILEWRIGHT_RETURN_IF_ERROR(device.launch(stream));  // each may begin before the one ahead has ended
        EXPECT_EQ(calls.end(stream, &graph), 0);
        EXPECT_EQ(calls.instantiate(&exec, graph, 0), 0);
        for (std::vector<int32_t> lengths : {std::vector{2000, 1, 0, 77}, {0, 0, 0, 3}, {5, 2000, 1999, 64}, {2000, 2000, 2000, 2000}}) {
            call.lengths = lengths;
            DecodeCall now = call;  // its answer is computed afresh
            now.forget_expected();
            TILEWRIGHT_RETURN_IF_ERROR(device.update_lengths());
            TILEWRIGHT_RETURN_IF_ERROR(device.poison());
            TILEWRIGHT_RETURN_IF_ERROR(gpu()->synchronize());
            EXPECT_EQ(calls.launch(exec, stream), 0);
            TILEWRIGHT_RETURN_IF_ERROR(device.fetch());
            now.out = call.out, now.lse = call.lse;
            now.expect_right("a replay", true);
        }
        EXPECT_EQ(calls.destroy_exec(exec), 0);
        EXPECT_EQ(calls.destroy(graph), 0);
        return (*driver)->destroy_stream(stream);
    });
    EXPECT_TRUE(done.ok()) << done.message();
    EXPECT_TRUE((*driver)->release_primary(0).ok());
}

}  // namespace
}  // namespace tilewright
