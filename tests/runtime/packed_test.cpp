// Packed sequences on the CPU: random lengths against float64, neighbours that must not matter, and what is refused.
#include "runtime/packed_call.h"
#include "runtime/opened.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <tuple>

#include "runtime/c_call.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

void expect_right(PackedCall call, int poisoned = -1) {
    const std::string what = to_text(call.problem) + (call.wide ? " int64" : " int32");
    Status status = cpu().forward_packed(call.problem, call.tensors(), call.sequences());
    ASSERT_TRUE(status.ok()) << what << ": " << status.message();
    call.expect_right(what, poisoned);
}

TEST(Packed, IsRightForManyRandomLengthsUnderEveryMask) {
    std::mt19937 random(5);
    for (const char* text : {"forward:hq4,hkv2,d40,fp32", "forward:hq4,hkv1,d64,dv32,bf16,causal", "forward:hq2,hkv1,d32,fp32,causal,topleft",
                             "forward:hq2,hkv2,d24,bf16,window9:4", "forward:hq4,hkv2,d16,fp32,window20:-1,topleft,sink", "forward:hq4,hkv2,d16,fp32,causal,softcap,alibi,sink"})
        for (unsigned seed = 1; seed <= 6; ++seed) {
            const size_t sequences = 1 + random() % 9;
            expect_right(PackedCall(text, random_lengths(random, sequences, 100), random_lengths(random, sequences, 150), seed));
        }
}

TEST(Packed, TakesEmptySequencesAnywhereAndNothingAtAll) {
    expect_right(PackedCall("forward:hq2,hkv1,d8,fp32,causal", {0, 3, 0}, {2, 0, 3}));
    expect_right(PackedCall("forward:hq2,hkv1,d8,fp32", {0, 0, 5, 0, 0, 7, 0}, {4, 0, 5, 9, 0, 0, 0}));
    expect_right(PackedCall("forward:hq2,hkv1,d8,fp32", {0, 0}, {0, 0}));
    expect_right(PackedCall("forward:hq2,hkv1,d8,fp32,sink", {300}, {0}));
    PackedCall none("forward:hq2,d8,fp32", {}, {});
    EXPECT_TRUE(cpu().forward_packed(none.problem, none.tensors(), none.sequences()).ok());
}

TEST(Packed, NanInOneSequenceReachesNoOther) {
    for (const char* text : {"forward:hq4,hkv2,d32,fp32", "forward:hq4,hkv2,d32,bf16,causal", "forward:hq4,hkv2,d32,fp32,window10:3"})
        for (int poisoned : {0, 1, 2}) expect_right(PackedCall(text, {70, 33, 90}, {81, 40, 100}, 2, poisoned), poisoned);
}

TEST(Packed, EachSequenceIsWhatForwardGivesItAlone) {
    PackedCall call("forward:hq4,hkv2,d64,fp32,causal", {64, 5, 200}, {64, 90, 200}, 2);
    ASSERT_TRUE(cpu().forward_packed(call.problem, call.tensors(), call.sequences()).ok());
    for (size_t s = 0; s < 3; ++s) {
        Problem one = call.problem;
        one.batch = 1, one.seq_q = call.query_lengths[s], one.seq_kv = call.key_lengths[s];
        ForwardTensors t = call.tensors();
        std::vector<float> out(call.out.size() / 4, NAN), lse(static_cast<size_t>(4 * one.seq_q));
        const float *query = static_cast<const float*>(t.query.data), *key = static_cast<const float*>(t.key.data), *value = static_cast<const float*>(t.value.data);
        t.query.data = query + call.query_starts[s] * t.query.row_stride, t.key.data = key + call.key_starts[s] * t.key.row_stride;
        t.value.data = value + call.key_starts[s] * t.value.row_stride, t.out.data = out.data(), t.lse = lse.data();
        ASSERT_TRUE(cpu().forward(one, t).ok());
        for (int64_t head = 0; head < 4; ++head)
            for (int64_t i = 0; i < one.seq_q; ++i) {
                EXPECT_NEAR(lse[static_cast<size_t>(head * one.seq_q + i)], call.lse[static_cast<size_t>(head * call.query_rows + call.query_starts[s] + i)], 1e-5);
                for (int64_t c = 0; c < 64; ++c)
                    EXPECT_NEAR(out[static_cast<size_t>(head * t.out.head_stride + i * t.out.row_stride + c)],
                                call.get(call.out, head * t.out.head_stride + (call.query_starts[s] + i) * t.out.row_stride + c), 1e-5);
            }
    }
}

TEST(Packed, IsTheSameFromC) {
    PackedCall call("forward:hq2,hkv1,d16,fp32,causal", {0, 9, 20}, {5, 9, 30}, 2);
    tilewright_options options = TILEWRIGHT_INIT_OPTIONS;
    tilewright_context* context = nullptr;
    ASSERT_EQ(tilewright_open(&options, &context), TILEWRIGHT_OK) << tilewright_last_error();
    tilewright_problem problem = TILEWRIGHT_INIT_PROBLEM;
    ASSERT_EQ(tilewright_parse_problem(to_text(call.problem).c_str(), &problem), TILEWRIGHT_OK);
    const tilewright_forward_tensors tensors = c_tensors(call.tensors());
    const tilewright_packed_sequences sequences = c_sequences(call.sequences());
    EXPECT_EQ(tilewright_forward_packed(context, &problem, &tensors, nullptr, nullptr), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_STREQ(tilewright_last_error(), "sequences is null");
    tilewright_problem drawn = TILEWRIGHT_INIT_PROBLEM;
    ASSERT_EQ(tilewright_parse_problem("forward:b3,sq=loguniform(4,20),packed", &drawn), TILEWRIGHT_OK);
    EXPECT_EQ(std::tuple(drawn.packed, drawn.shortest_q, drawn.shortest_kv, drawn.seq_q), std::tuple(1, 4, 4, 20));
    EXPECT_EQ(tilewright_prepare(context, &drawn), TILEWRIGHT_OK) << tilewright_last_error();
    drawn.struct_size = offsetof(tilewright_problem, shortest_q);
    EXPECT_EQ(tilewright_parse_problem("forward:b3,sq=loguniform(4,20),packed", &drawn), TILEWRIGHT_UNSUPPORTED);
    EXPECT_EQ(tilewright_parse_problem("decode:b3,sq1,skv20", &drawn), TILEWRIGHT_OK);
    EXPECT_EQ(tilewright_forward_packed(context, &problem, &tensors, &sequences, nullptr), TILEWRIGHT_OK) << tilewright_last_error();
    call.expect_right("from C");
    tilewright_close(context);
}

TEST(Packed, NamesTheSequenceThatIsWrong) {
    auto message = [](PackedCall call, const PackedSequences& sequences) {
        Status status = cpu().forward_packed(call.problem, call.tensors(), sequences);
        EXPECT_EQ(status.code(), StatusCode::invalid_argument);
        return status.message();
    };
    PackedCall call("forward:hq2,d8,fp32", {4, 5, 6}, {7, 8, 9}, 2);
    call.narrow_query_starts[2] = 3;
    EXPECT_THAT(message(call, call.sequences()), HasSubstr("query_starts: sequence 2 begins at row 3; it must be from 6 to 22"));
    call.narrow_query_starts[2] = 11;
    call.narrow_key_starts[3] = 400;
    EXPECT_THAT(message(call, call.sequences()), HasSubstr("key_starts: the last sequence, 2, ends at row 400; it must be from 18 to 34"));
    call.narrow_key_starts[3] = 27;
    call.narrow_key_starts[0] = -1;
    EXPECT_THAT(message(call, call.sequences()), HasSubstr("key_starts: sequence 0 begins at row -1"));
    call.narrow_key_starts[0] = 3;
    call.problem.seq_kv = 8;
    EXPECT_THAT(message(call, call.sequences()), HasSubstr("key_starts: sequence 2 has 9 rows; the problem's longest has 8"));
    call.problem.seq_kv = 9;
    PackedSequences sequences = call.sequences();
    sequences.key_starts = nullptr;
    EXPECT_THAT(message(call, sequences), HasSubstr("key_starts is null, but there are 3 sequences"));
    sequences = call.sequences(), sequences.query_rows = -1;
    EXPECT_THAT(message(call, sequences), HasSubstr("seq_q is -1"));
    sequences = call.sequences(), sequences.type = IndexType(3);
    EXPECT_THAT(message(call, sequences), HasSubstr("it must be 1 (int32) or 2 (int64)"));
    call.problem.bias = true;
    EXPECT_EQ(cpu().forward_packed(call.problem, call.tensors(), call.sequences()).code(), StatusCode::unsupported);
    call.problem.bias = false, call.problem.packed = true;
    EXPECT_EQ(cpu().forward(call.problem, call.tensors()).code(), StatusCode::unsupported);
}

}  // namespace
}  // namespace tilewright
