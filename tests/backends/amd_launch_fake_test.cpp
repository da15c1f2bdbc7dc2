// Launches on the AMD device against a HIP runtime that remembers its calls: what is asked, in which order.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "amd_device_fake.h"
#include "amd_test_kernels.h"

namespace tilewright::amd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A kernel that takes what every launch hands over.
KernelSource shaped_kernel(size_t parameter_bytes) {
    return {
        .text = "struct P { char bytes[" + std::to_string(parameter_bytes) +
                "]; };\nextern \"C\" __attribute__((global, amdgpu_flat_work_group_size(128, 128))) void shaped(P p) { *(volatile char*)0 = p.bytes[7]; }\n",
        .entry = "shaped",
        .threads = 128,
        .shared_bytes = 512};
}

KernelSource forward_shaped_kernel() { return shaped_kernel(sizeof(kernel::ForwardParameters)); }

class AmdLaunch : public AmdDevice {
protected:
    void SetUp() override {
        if (!test_compiler().ok()) GTEST_SKIP() << test_compiler().status().message();
        object_ = compile_for_test(forward_shaped_kernel(), "gfx942");
        spec_.problem = *parse_problem("forward:b2,hq4,hkv2,sq100,skv200,d64,bf16");
        spec_.config.block_q = 64;
        device_ = open(1);
    }
    void TearDown() override { kernel_.reset(), device_.reset(); }
    Status load() {
        auto kernel = device_->load(object_, spec_, forward_shaped_kernel());
        if (kernel.ok()) kernel_ = *std::move(kernel);
        return kernel.status();
    }
    kernel::ForwardParameters parameters() const {
        kernel::ForwardParameters p{};
        p.batch = 2, p.heads_q = 4, p.heads_kv = 2, p.seq_q = 100, p.seq_kv = 200, p.scale = 0.125f;
        return p;
    }
    CodeObject object_;
    KernelSpec spec_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<Kernel> kernel_;
};

TEST_F(AmdLaunch, HandsOverTheParametersAndOneBlockATile) {
    ASSERT_TRUE(load().ok());
    EXPECT_EQ(state_->image, "\177ELF");
    void* stream = &spec_;
    kernel::ForwardParameters given = parameters();
    ASSERT_TRUE(device_->launch(*kernel_, given, stream).ok());
    ASSERT_EQ(state_->launches.size(), 1u);
    const fake_hip::Launch& launch = state_->launches[0];
    EXPECT_THAT(launch.grid, ElementsAre(16, 1, 1));  // 2 batches, 4 heads, 2 tiles of 64 rows
    EXPECT_THAT(launch.block, ElementsAre(128, 1, 1));
    EXPECT_EQ(launch.shared_bytes, 512u);
    EXPECT_EQ(launch.stream, stream);
    kernel::ForwardParameters seen;
    memcpy(&seen, launch.arguments.data(), sizeof seen);
    EXPECT_EQ(seen.tiles, 16);
    EXPECT_GT(seen.section_heads, 0);
    EXPECT_EQ(seen.scale, 0.125f);
    EXPECT_EQ(seen.seq_kv, 200);
}

TEST_F(AmdLaunch, PackedDecodingAndAppendingKernelsGetTheirOwnParametersAndBlocks) {
    auto seen = [&](auto parameters) {
        memcpy(&parameters, state_->launches.at(0).arguments.data(), sizeof parameters);
        return parameters;
    };
    auto load_kind = [&](KernelKind kind, const char* problem, size_t bytes) {
        state_->argument_bytes = bytes;
        spec_.kind = kind, spec_.problem = *parse_problem(problem), spec_.config.workers = 4;
        spec_.problem.packed = kind == KernelKind::attention_forward, spec_.paged = !spec_.problem.packed;
        auto source = generate(spec_, *find_arch("gfx942"));
        ASSERT_TRUE(source.ok()) << source.status().message();
        auto kernel = device_->load(compile_for_test(*source, "gfx942"), spec_, *source);
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        kernel_ = *std::move(kernel);
        state_->launches.clear();
    };
    load_kind(KernelKind::attention_forward, "forward:hq4,hkv2,d64,bf16,causal", sizeof(kernel::PackedParameters));
    kernel::PackedParameters packed{};
    packed.forward = parameters(), packed.forward.batch = 1, packed.sequences = 5, packed.top_left = 1;
    ASSERT_TRUE(device_->launch(*kernel_, packed, nullptr).ok());
    packed.sequences = 0;
    ASSERT_TRUE(device_->launch(*kernel_, packed, nullptr).ok());
    ASSERT_EQ(state_->launches.size(), 1u);
    EXPECT_THAT(state_->launches[0].grid, ElementsAre(24, 1, 1));  // 4 heads, 100 / 64 + 5 slots
    EXPECT_EQ(seen(packed).top_left, 1);

    load_kind(KernelKind::attention_decode, "decode:hq8,hkv2,sq1,skv500,d64,bf16,page16", sizeof(kernel::DecodeParameters));
    kernel::DecodeParameters decode{};
    decode.forward = parameters(), decode.forward.heads_q = 8, decode.forward.seq_q = 1, decode.units = 7, decode.table_stride = 33;
    ASSERT_TRUE(device_->launch(*kernel_, decode, nullptr).ok());
    ASSERT_EQ(state_->launches.size(), 1u);
    EXPECT_THAT(state_->launches[0].grid, ElementsAre(14, 1, 1));  // 2 lines
    EXPECT_EQ(seen(decode).table_stride, 33);

    load_kind(KernelKind::append, "decode:hkv2,hq2,d64,bf16,page16,skv500", sizeof(kernel::AppendParameters));
    kernel::AppendParameters append{};
    append.batch = 3, append.heads_kv = 2, append.rows = 17, append.capacity = 500;
    ASSERT_TRUE(device_->launch(*kernel_, append, nullptr).ok());
    ASSERT_EQ(state_->launches.size(), 1u);
    EXPECT_THAT(state_->launches[0].grid, ElementsAre(12, 1, 1));  // two runs of rows
    EXPECT_EQ(seen(append).capacity, 500);
}

TEST_F(AmdLaunch, HandsOverTheParametersOfABackward) {
    KernelSource source = shaped_kernel(sizeof(kernel::PlainBackwardParameters));
    object_ = compile_for_test(source, "gfx942");
    EXPECT_THAT(load().message(), HasSubstr("bytes of arguments"));  // of a forward's kernel
    spec_.kind = KernelKind::attention_backward_keys, spec_.config.block_kv = 32;
    auto kernel = device_->load(object_, spec_, source);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    state_->argument_bytes = sizeof(kernel::PlainBackwardParameters);
    kernel::BackwardParameters given{};
    given.forward = parameters(), given.padded_queries = 128;
    ASSERT_TRUE(device_->launch(**kernel, given, nullptr).ok());
    ASSERT_EQ(state_->launches.size(), 1u);
    EXPECT_THAT(state_->launches[0].grid, ElementsAre(2 * 2 * 7, 1, 1));  // 2 batches, 2 KV heads, 7 tiles of 32 keys
    kernel::PlainBackwardParameters seen;
    memcpy(&seen, state_->launches[0].arguments.data(), sizeof seen);
    EXPECT_EQ(seen.forward.tiles, 28);
    EXPECT_EQ(seen.padded_queries, 128);
}

TEST_F(AmdLaunch, SectionsAreOfTheHeadsOfADie) {
    ASSERT_TRUE(load().ok());
    kernel::ForwardParameters given = parameters();
    auto section_of = [&](int batch, int section_kb) {
        state_->launches.clear();
        spec_.config.section_kb = section_kb, given.batch = batch;
        EXPECT_TRUE(load().ok());
        EXPECT_TRUE(device_->launch(*kernel_, given, nullptr).ok());
        kernel::ForwardParameters seen;
        memcpy(&seen, state_->launches.at(0).arguments.data(), sizeof seen);
        return seen.section_heads;
    };
    EXPECT_EQ(section_of(16, 0), 16);   // 32 KV heads of two query heads on four dies
    EXPECT_EQ(section_of(16, 100), 4);  // two KV heads of 50 KiB
    EXPECT_EQ(section_of(1, 0), 4);     // fewer KV heads than dies: all heads
}

TEST_F(AmdLaunch, AnEmptyProblemLaunchesNothing) {
    ASSERT_TRUE(load().ok());
    kernel::ForwardParameters given = parameters();
    given.seq_q = 0;
    EXPECT_TRUE(device_->launch(*kernel_, given, nullptr).ok());
    given = parameters(), given.batch = 0;
    EXPECT_TRUE(device_->launch(*kernel_, given, nullptr).ok());
    EXPECT_TRUE(state_->launches.empty());
}

TEST_F(AmdLaunch, TimesEveryLaunchByEventsWithoutWhatComesBefore) {
    ASSERT_TRUE(load().ok());
    int before = 0;
    state_->calls.clear();
    auto times = device_->time_us(
        3, [&] { return ++before, Status(); }, [&] { return device_->launch(*kernel_, parameters(), nullptr); });
    ASSERT_TRUE(times.ok());
    EXPECT_THAT(*times, ElementsAre(250.0, 250.0, 250.0));
    EXPECT_EQ(before, 3);
    EXPECT_EQ(std::count(state_->calls.begin(), state_->calls.end(), "hipEventRecord"), 6);
    fail("hipModuleLaunchKernel", 1);
    EXPECT_THAT(device_->time_us(1, nullptr, [&] { return device_->launch(*kernel_, parameters(), nullptr); }).status().message(),
                HasSubstr("hipModuleLaunchKernel failed: hipErrorInvalidValue"));
}

TEST_F(AmdLaunch, AsksTheVendorForResidentBlocks) {
    ASSERT_TRUE(load().ok());
    auto blocks = device_->resident_blocks(*kernel_);
    ASSERT_TRUE(blocks.ok());
    EXPECT_EQ(*blocks, 3);
}

TEST_F(AmdLaunch, RefusesCodeThatIsNotForIt) {
    CodeObject right = object_;
    object_ = compile_for_test(forward_shaped_kernel(), "gfx90a");
    EXPECT_THAT(load().message(), HasSubstr("machine code for gfx90a does not run on gfx942"));
    object_ = compile_for_test(tiny_kernel(), "gfx942");
    EXPECT_THAT(load().message(), HasSubstr("no kernel 'shaped'"));
    object_ = {"gfx942", "nonsense", ""};
    EXPECT_EQ(load().code(), StatusCode::invalid_argument);
    object_ = right;
    fail("hipModuleGetFunction", 1);
    EXPECT_EQ(load().code(), StatusCode::runtime);
}

}  // namespace
}  // namespace tilewright::amd
