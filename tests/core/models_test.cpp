// Problems made from the shapes of public models.
#include "core/models.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

std::string text_of(const char* model, Phase phase, int64_t seq, int64_t batch) {
    Result<Problem> problem = model_problem(model, phase, seq, batch);
    return problem.ok() ? to_text(*problem) : problem.status().message();
}

TEST(Models, PrefillIsCausalForDecodersAndFullForEncoders) {
    EXPECT_EQ(text_of("llama-3.1-8b", Phase::prefill, 4096, 2), "forward:b2,hq32,hkv8,sq4096,skv4096,d128,bf16,causal");
    EXPECT_EQ(text_of("deepseek-v3", Phase::prefill, 1024, 1), "forward:b1,hq128,hkv128,sq1024,skv1024,d192,dv128,bf16,causal");
    EXPECT_EQ(text_of("bert-base", Phase::prefill, 512, 8), "forward:b8,hq12,hkv12,sq512,skv512,d64,bf16");
}

TEST(Models, DecodeIsOneQueryOverAllKeys) {
    EXPECT_EQ(text_of("llama-3.1-8b", Phase::decode, 4096, 4), "decode:b4,hq32,hkv8,sq1,skv4096,d128,bf16");
}

TEST(Models, WindowCountsTheQueryItselfAndIsLeftOutWhereItHidesNothing) {
    EXPECT_EQ(text_of("mistral-7b", Phase::prefill, 8192, 1), "forward:b1,hq32,hkv8,sq8192,skv8192,d128,bf16,window4095:0");
    EXPECT_EQ(text_of("mistral-7b", Phase::prefill, 4096, 1), "forward:b1,hq32,hkv8,sq4096,skv4096,d128,bf16,causal");
    EXPECT_EQ(text_of("gpt-oss-20b", Phase::decode, 4096, 1), "decode:b1,hq64,hkv8,sq1,skv4096,d64,bf16,window127:0,sink");
    EXPECT_EQ(text_of("gemma-2-9b", Phase::prefill, 8192, 1), "forward:b1,hq16,hkv8,sq8192,skv8192,d256,bf16,window4095:0,softcap");
}

TEST(Models, EveryShapeIsALegalProblemWithASource) {
    for (const ModelShape& shape : model_shapes()) {
        EXPECT_TRUE(model_problem(shape.name, Phase::prefill, 1024, 1).ok()) << shape.name;
        EXPECT_EQ(model_problem(shape.name, Phase::decode, 1024, 1).ok(), shape.causal) << shape.name;
        EXPECT_NE(std::string(shape.source).find("config.json"), std::string::npos) << shape.name;
    }
}

TEST(Models, WrongInputIsNamed) {
    EXPECT_NE(text_of("llama-9", Phase::prefill, 1, 1).find("llama-3.1-8b"), std::string::npos);
    EXPECT_NE(text_of("vit-l", Phase::decode, 1, 1).find("no decode phase"), std::string::npos);
    EXPECT_NE(text_of("vit-l", Phase::prefill, -5, 1).find("-5"), std::string::npos);
    EXPECT_NE(parse_phase("training").status().message().find("prefill or decode"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
