// Problem text, limits and counts.
#include "tilewright/problem.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(ProblemText, RoundTripsEveryPart) {
    for (const char* text : {"forward:b4,hq32,hkv8,sq4096,skv4096,d128,bf16,causal", "forward:b1,hq1,hkv1,sq5,skv2,d40,dv72,fp16,window3:0,topleft",
                             "decode:b64,hq32,hkv8,sq1,skv4096,d128,bf16", "backward:b1,hq2,hkv2,sq7,skv7,d64,fp32,softcap,bias,alibi,sink",
                             "forward:b0,hq1,hkv1,sq0,skv0,d256,bf16,window-1:5"}) {
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
    EXPECT_NE(message("forward:d257").find("257; it must be from 1 to 256"), std::string::npos);
    EXPECT_NE(message("sideways:b1").find("'sideways'"), std::string::npos);
    EXPECT_NE(message("forward:window3").find("'window3'"), std::string::npos);
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
