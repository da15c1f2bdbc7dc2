// Problem text, limits and counts.
#include "tilewright/problem.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(ProblemText, RoundTripsEveryPart) {
    for (const char* text : {"forward:b4,hq32,hkv8,sq4096,skv4096,d128,bf16,causal", "forward:b1,hq1,hkv1,sq5,skv2,d40,dv72,fp16,window3:0,topleft",
                             "decode:b64,hq32,hkv8,sq1,skv4096,d128,bf16", "backward:b1,hq2,hkv2,sq7,skv7,d64,fp32,softcap,bias,alibi,sink",
                             "backward:b1,hq2,hkv2,sq7,skv7,d64,bf16,causal,sink,deterministic",
                             "forward:b0,hq1,hkv1,sq0,skv0,d256,bf16,window-1:5", "decode:b64,hq32,hkv8,sq1,skv4096,d128,bf16,page64",
                             "decode:b32,hq32,hkv8,sq1,skv=loguniform(128,32768),d128,bf16,page16,seed7", "decode:b2,hq4,hkv1,sq4,skv=loguniform(1,1),d64,fp32,causal",
                             "forward:b8,hq32,hkv8,sq=loguniform(64,8192),skv=loguniform(64,8192),d128,bf16,causal,packed,seed2", "forward:b3,hq2,hkv2,sq5,skv9,d64,fp16,sink,packed",
                             "forward:b3,hq2,hkv2,sq5,skv=loguniform(3,9),d64,fp16,packed"}) {
        Result<Problem> problem = parse_problem(text);
        ASSERT_TRUE(problem.ok()) << problem.status().message();
        EXPECT_EQ(to_text(*problem), text);
    }
}

TEST(ProblemText, FillsInTheStatedDefaults) {
    Result<Problem> problem = parse_problem("forward:hq4,sq10,d32");
    ASSERT_TRUE(problem.ok());
    EXPECT_EQ(to_text(*problem), "forward:b1,hq4,hkv4,sq10,skv10,d32,bf16");
}

TEST(ProblemText, NamesWhatIsWrong) {
    auto message = [](const char* text) { return parse_problem(text).status().message(); };
    EXPECT_NE(message("forward:b1,fp8").find("'fp8'"), std::string::npos);
    EXPECT_NE(message("forward:b1,b2").find("repeats 'b'"), std::string::npos);
    EXPECT_NE(message("forward:sq99999999999999999999").find("sq99999999999999999999"), std::string::npos);
    EXPECT_NE(message("forward:sq-5").find("seq_q is -5"), std::string::npos);
    EXPECT_NE(message("forward:hq6,hkv4").find("heads_q is 6"), std::string::npos);
    EXPECT_NE(message("forward:d577").find("577; it must be from 1 to 576"), std::string::npos);
    EXPECT_NE(message("sideways:b1").find("'sideways'"), std::string::npos);
    EXPECT_NE(message("forward:window3").find("'window3'"), std::string::npos);
    EXPECT_NE(message("decode:skv100,page48").find("page_size is 48; it must be a power of two"), std::string::npos);
    EXPECT_NE(message("decode:skv100,page8").find("page_size is 8; it must be from 16"), std::string::npos);
    EXPECT_NE(message("forward:sq100,page64").find("page_size is 64; pages are for decode"), std::string::npos);
    EXPECT_NE(message("forward:skv=loguniform(1,5)").find("lengths that differ are for decode"), std::string::npos);
    EXPECT_NE(message("decode:skv=loguniform(6,5)").find("shortest_kv is 6; it must be from 1 to 5"), std::string::npos);
    EXPECT_NE(message("decode:skv=loguniform(6)").find("malformed part 'skv=loguniform(6)'"), std::string::npos);
    EXPECT_NE(message("decode:skv=loguniform(6,9").find("malformed part 'skv=loguniform(6,9'"), std::string::npos);
    EXPECT_NE(message("decode:skv=normal(6").find("malformed part 'skv=normal(6'"), std::string::npos);
    EXPECT_NE(message("decode:skv5,skv=loguniform(1,5)").find("repeats 'skv'"), std::string::npos);
    EXPECT_NE(message("forward:deterministic").find("deterministic is for backward problems; forward always is"), std::string::npos);
    EXPECT_NE(message("forward:sq=loguniform(1,5)").find("shortest_q is 1; numbers of queries that differ are for packed"), std::string::npos);
    EXPECT_NE(message("decode:sq=loguniform(1,5),skv9").find("shortest_q is 1; numbers of queries that differ are for packed"), std::string::npos);
    EXPECT_NE(message("forward:sq=loguniform(7,5),packed").find("shortest_q is 7; it must be from 1 to 5"), std::string::npos);
    EXPECT_NE(message("forward:sq=loguniform(7,packed").find("malformed part 'sq=loguniform(7,packed'"), std::string::npos);
    EXPECT_NE(message("forward:sq5,sq=loguniform(1,5),packed").find("repeats 'sq'"), std::string::npos);
    EXPECT_NE(message("decode:skv5,packed").find("packed sequences are for forward and backward problems, not decode"), std::string::npos);
    EXPECT_NE(message("decode:skv5,seed3").find("length_seed is 3"), std::string::npos);
}

TEST(Problem, DrawsTheSameLengthsEverywhereAndAllDoublingsAlike) {
    const Problem problem = *parse_problem("decode:b4096,sq1,skv=loguniform(128,32768),seed3");
    const std::vector<int32_t> lengths = kv_lengths(problem);
    EXPECT_EQ((std::vector<int32_t>(lengths.begin(), lengths.begin() + 4)), (std::vector<int32_t>{986, 3887, 13240, 494}));
    int below[8] = {};
    for (const int32_t length : lengths) {
        ASSERT_TRUE(length >= 128 && length <= 32768) << length;
        for (int i = 0; i < 8; ++i) below[i] += length < 128 << (i + 1);
    }
    for (int i = 0; i < 7; ++i) EXPECT_NEAR(below[i], 512 * (i + 1), 150) << "below " << (128 << (i + 1));
    EXPECT_EQ(kv_lengths(*parse_problem("decode:b2,skv77")), (std::vector<int32_t>{77, 77}));
    EXPECT_NE(kv_lengths(*parse_problem("decode:b4096,sq1,skv=loguniform(128,32768),seed4")), lengths);
    const Problem packed = *parse_problem("forward:b64,sq=loguniform(128,32768),packed,seed3");
    EXPECT_EQ(to_text(packed), "forward:b64,hq1,hkv1,sq=loguniform(128,32768),skv=loguniform(128,32768),d64,bf16,packed,seed3");
    EXPECT_EQ(query_lengths(packed), kv_lengths(packed));
    EXPECT_EQ(query_lengths(packed), std::vector<int32_t>(lengths.begin(), lengths.begin() + 64));
    double pairs = 0;
    for (const int32_t length : lengths) pairs += length;
    EXPECT_EQ(useful_flops(problem), 2 * pairs * 128);
}

TEST(Problem, VisiblePairsAreThoseOfALoopOverQueries) {
    auto counted = [](const Problem& p) {
        int64_t pairs = 0, diagonal = p.alignment == Alignment::bottom_right ? p.seq_kv - p.seq_q : 0;
        for (int64_t query = 0; query < p.seq_q; ++query)
            for (int64_t key = 0; key < p.seq_kv; ++key)
                pairs += (p.window_left == -1 || key >= query + diagonal - p.window_left) && (p.window_right == -1 || key <= query + diagonal + p.window_right);
        return pairs;
    };
    Problem p;
    for (p.seq_q = 0; p.seq_q < 8; ++p.seq_q)
        for (p.seq_kv = 0; p.seq_kv < 8; ++p.seq_kv)
            for (p.window_left = -1; p.window_left < 9; ++p.window_left)
                for (p.window_right = -1; p.window_right < 9; ++p.window_right)
                    for (Alignment alignment : {Alignment::bottom_right, Alignment::top_left}) {
                        p.alignment = alignment;
                        ASSERT_EQ(visible_pairs(p), counted(p)) << to_text(p);
                    }
    p = *parse_problem("forward:sq536870912,skv536870912,causal");
    EXPECT_EQ(visible_pairs(p), (int64_t{1} << 28) * ((int64_t{1} << 29) + 1));
}

TEST(Problem, OneSequenceOfARaggedBatchIsAProblemWithoutLengths) {
    for (const char* text : {"forward:b4,hq8,hkv2,sq=loguniform(3,64),skv=loguniform(3,128),d64,causal,packed,seed2", "decode:b4,hq8,hkv2,sq1,skv=loguniform(1,128),d64,page16,seed3"}) {
        const Problem all = *parse_problem(text), one = single_sequence(all, 3, 40);
        EXPECT_EQ(one.batch, 1);
        EXPECT_EQ(one.seq_q, 3);
        EXPECT_EQ(one.seq_kv, 40);
        EXPECT_EQ(query_lengths(one), std::vector<int32_t>{3});
        EXPECT_EQ(kv_lengths(one), std::vector<int32_t>{40});
        EXPECT_EQ(one.heads_kv, all.heads_kv);
        EXPECT_EQ(one.window_right, all.window_right);
        EXPECT_TRUE(validate(one).ok()) << to_text(one);
    }
}

TEST(Problem, CountsVisiblePairsUnderEveryMask) {
    auto pairs = [](const char* text) { return visible_pairs(*parse_problem(text)); };
    EXPECT_EQ(pairs("forward:sq4,skv6"), 24);
    EXPECT_EQ(pairs("forward:sq4,skv4,causal"), 10);
    EXPECT_EQ(pairs("forward:sq5,skv2,causal"), 3);            // rows 3 and 4 see one and two keys
    EXPECT_EQ(pairs("forward:sq2,skv5,causal,topleft"), 3);
    EXPECT_EQ(pairs("forward:sq6,skv6,window2:0"), 15);        // 1 + 2 + 3 + 3 + 3 + 3
    EXPECT_EQ(useful_flops(*parse_problem("forward:hq2,sq4,d64,causal")), 2.0 * 2 * 10 * 128);
}

}  // namespace
}  // namespace tilewright
