// Decoding on the CPU: against the definition in float64, for any lengths, pages and splits; and its errors.
#include "runtime/decode_call.h"
#include "runtime/opened.h"

#include <gmock/gmock.h>

namespace tilewright {
namespace {

using testing::HasSubstr;

class Decode : public testing::Test {
protected:
    static Attention& attention() {
        static Attention opened = [] {
            AttentionOptions options = options_on("cpu:0");
            options.threads = 4;
            return *Attention::open(options);
        }();
        return opened;
    }
    std::vector<float> workspace;

    void expect_right(DecodeCall call, std::initializer_list<int> splits = {1, 2, 3, 7, 100}) {  // with 3, a unit ends one sequence and begins another
        for (int count : splits) {
            std::string what = to_text(call.problem) + " page_size " + std::to_string(call.page_size) + " splits " + std::to_string(count);
            Status status = call.run(attention(), count, workspace);
            ASSERT_TRUE(status.ok()) << what << ": " << status.message();
            call.expect_right(what);
        }
    }
    std::string error(DecodeCall& call, const DecodeTensors& tensors) {
        Status status = attention().decode(call.problem, tensors);
        EXPECT_EQ(status.code(), StatusCode::invalid_argument);
        return status.message();
    }
};

TEST_F(Decode, IsRightForLengthsOfAllKindsDenseAndInPages) {
    std::vector<int32_t> lengths{1000, 0, 5, 333, 64, 1, 0, 129};
    for (int64_t page : {0, 16, 64, 256}) expect_right(DecodeCall("decode:hq8,hkv2,sq1,skv1000,d64,fp32", lengths, page));
    expect_right(DecodeCall("decode:hq8,hkv2,sq1,skv1000,d64,fp32", lengths, 16, true));
    expect_right(DecodeCall("decode:hq8,hkv2,sq1,skv1000,d64,fp32", lengths, 0, true));
    expect_right(DecodeCall("decode:hq8,hkv2,sq1,skv1000,d64,fp32", {0, 0}));
    expect_right(DecodeCall("decode:hq8,hkv2,sq1,skv0,d64,fp32", {0, 0}));
}

TEST_F(Decode, GivesSeveralNewQueriesTheirCausalTail) {
    std::vector<int32_t> lengths{500, 3, 0, 16, 70};
    for (const char* text : {"decode:hq6,hkv2,sq3,skv500,d64,bf16,causal", "decode:hq8,hkv2,sq16,skv500,d64,bf16,causal"})
        for (int64_t page : {0, 16}) expect_right(DecodeCall(text, lengths, page, page > 0), {1, 5, 40});
}

TEST_F(Decode, KnowsWindowsSinksAndAlibi) {
    for (int64_t page : {0, 32}) expect_right(DecodeCall("decode:hq4,hkv1,sq4,skv700,d40,dv24,fp32,window100:2,sink,alibi", {700, 0, 90, 101, 2}, page), {1, 3, 30});
    expect_right(DecodeCall("decode:hq2,hkv2,sq2,skv300,d64,fp32,causal,topleft,softcap", {300, 1, 0, 150}), {1, 4});
}

TEST_F(Decode, AddsABiasThatMayHideKeysWhateverTheyHold) {
    DecodeCall call("decode:hq2,hkv1,sq2,skv300,d32,fp32,bias", {300, 0, 65, 128}, 16);
    for (int64_t s = 0; s < 4; ++s)
        for (int64_t j = 3; j < call.lengths[static_cast<size_t>(s)]; j += 7)
            call.set(call.value, call.place(s, 0, j, 32), INFINITY), call.set(call.key, call.place(s, 0, j, 32), NAN);
    expect_right(call, {1, 5});
}

TEST_F(Decode, HidesTheNewestKeyFromTheQueriesBeforeItWhateverItHolds) {
    DecodeCall call("decode:hq2,hkv1,sq2,skv300,d64,fp32,causal", {300, 128});
    for (int64_t c = 0; c < 64; ++c) call.set(call.key, call.place(0, 0, 299, 64) + c, NAN), call.set(call.value, call.place(1, 0, 127, 64) + c, INFINITY);
    ASSERT_TRUE(call.run(attention(), 3, workspace).ok());
    for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(std::isfinite(call.get(call.out, i * 64)), i % 2 == 0) << i;
}

// Latent attention: one KV head that all query heads share, whose values are the first columns of its keys.
TEST_F(Decode, TakesLatentHeadsWhoseKeysHoldTheirValues) {
    for (int64_t page : {0, 64}) {
        DecodeCall call("decode:hq16,hkv1,sq2,skv300,d576,dv512,bf16,causal", {300, 0, 77}, page);
        for (size_t s = 0; s < call.lengths.size(); ++s)
            for (int64_t row = 0; row < call.lengths[s]; ++row)
                for (int64_t c = 0; c < 512; ++c)
                    call.set(call.value, call.place(static_cast<int64_t>(s), 0, row, 512) + c,
                             static_cast<float>(call.get(call.key, call.place(static_cast<int64_t>(s), 0, row, 576) + c)));
        DecodeTensors t = call.tensors();
        t.value = t.key;
        for (int splits : {1, 5}) {
            std::fill(call.out.begin(), call.out.end(), 0xff);
            const int64_t bytes = *attention().decode_workspace_bytes(call.problem, splits);
            std::vector<double> space(static_cast<size_t>(bytes) / 8 + 2);
            t.workspace = space.data(), t.workspace_bytes = bytes, t.splits = splits;
            Status status = attention().decode(call.problem, t);
            ASSERT_TRUE(status.ok()) << status.message();
            call.expect_right("latent, page " + std::to_string(page));
        }
    }
}

TEST_F(Decode, GivesTheSameBitsOnEveryRun) {
    DecodeCall call("decode:hq8,hkv2,sq1,skv20000,d64,fp32", {20000, 0, 5, 3333}, 16);
    for (int splits : {1, 64}) {  // long enough that it is not always the same part that is done last
        ASSERT_TRUE(call.run(attention(), splits, workspace).ok());
        std::vector<unsigned char> out = call.out;
        std::vector<float> lse = call.lse;
        for (int run = 0; run < 20; ++run) {
            ASSERT_TRUE(call.run(attention(), splits, workspace).ok());
            ASSERT_EQ(call.out, out);
            ASSERT_EQ(std::memcmp(call.lse.data(), lse.data(), lse.size() * sizeof(float)), 0);
        }
    }
}

TEST_F(Decode, LeavesAWorkspaceThatServesAgain) {
    DecodeCall call("decode:hq8,hkv2,sq1,skv1000,d64,fp32", {1000, 0, 5, 333, 64, 1, 0, 129});
    workspace.assign(static_cast<size_t>(*attention().decode_workspace_bytes(call.problem, 9)) / 4 + 4, 0.0f);
    DecodeTensors t = call.tensors();
    void* start = workspace.data();
    size_t space = workspace.size() * 4;
    t.workspace = std::align(16, space - 16, start, space), t.workspace_bytes = static_cast<int64_t>(space), t.splits = 9;
    for (int run = 0; run < 3; ++run) {
        std::rotate(call.lengths.begin(), call.lengths.begin() + run, call.lengths.end());  // other lengths, the same sizes
        DecodeCall now("decode:hq8,hkv2,sq1,skv1000,d64,fp32", call.lengths);
        DecodeTensors of = now.tensors();
        of.workspace = t.workspace, of.workspace_bytes = t.workspace_bytes, of.splits = t.splits;
        ASSERT_TRUE(attention().decode(now.problem, of).ok());
        now.expect_right("run " + std::to_string(run));
    }
}

// Weights of parts must not depend on how their log-sums are rounded: here one unit in the last place of a log-sum is 1/4.
TEST_F(Decode, WeighsPartsOfHugeScoresAsOneSoftmax) {
    DecodeCall call("decode:hq1,hkv1,sq1,skv512,d1,dv1,fp32", {512});
    call.set(call.query, 0, 1);
    for (int64_t j = 0; j < 512; ++j) call.set(call.key, j, 4000000.0f + 0.25f * static_cast<float>(j / 64 % 2)), call.set(call.value, j, static_cast<float>(j / 64 % 2));
    for (int splits : {1, 8}) {
        ASSERT_TRUE(call.run(attention(), splits, workspace).ok());
        EXPECT_NEAR(call.get(call.out, 0), 1 / (1 + std::exp(-0.25)), 1e-5) << splits;
    }
}

TEST_F(Decode, ShowsNaNOfAVisibleKeyInItsOwnSequenceAlone) {
    DecodeCall call("decode:hq8,hkv2,sq1,skv1000,d64,fp32", {1000, 700});
    call.set(call.key, call.place(0, 1, 40, 64) + 3, NAN);
    ASSERT_TRUE(call.run(attention(), 7, workspace).ok());
    for (int64_t head = 0; head < 8; ++head) {
        EXPECT_EQ(std::isnan(call.get(call.out, head * 64)), head >= 4) << head;
        EXPECT_EQ(std::isnan(call.lse[static_cast<size_t>(head)]), head >= 4) << head;
        EXPECT_FALSE(std::isnan(call.get(call.out, (8 + head) * 64))) << head;
    }
}

TEST_F(Decode, NamesWhatIsWrongAndTheLimit) {
    DecodeCall call("decode:hq8,hkv2,sq1,skv1000,d64,fp32", {1000, 5, 0}, 16);
    DecodeTensors t = call.tensors();
    t.splits = 9;
    EXPECT_THAT(error(call, t), HasSubstr("the workspace has 0 bytes; it must have "));
    t = call.tensors(), t.splits = -1;
    EXPECT_THAT(error(call, t), HasSubstr("splits is -1"));
    t = call.tensors(), t.page_size = 24;
    EXPECT_THAT(error(call, t), HasSubstr("page_size is 24; it must be a power of two from 16"));
    t = call.tensors(), t.table_stride = 3;
    EXPECT_THAT(error(call, t), HasSubstr("sequence 0 has 1000 keys; it must be from 0 to 48"));
    t = call.tensors(), t.block_table = nullptr;
    EXPECT_THAT(error(call, t), HasSubstr("there is no block table"));
    t = call.tensors(), call.lengths[1] = 1001;
    EXPECT_THAT(error(call, t), HasSubstr("sequence 1 has 1001 keys; it must be from 0 to 1000"));
    call.problem.operation = Operation::forward;
    EXPECT_EQ(attention().decode(call.problem, t).code(), StatusCode::unsupported);
}

}  // namespace
}  // namespace tilewright
