// tilewright verify: bad usage is named, one case and one problem run on the processor and say so in text and in JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/process.h"

namespace tilewright {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ProcessResult verify(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {TILEWRIGHT_COMMAND, "verify"});
    Result<ProcessResult> result = run_process({.arguments = std::move(arguments), .timeout_seconds = 120});
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *result : ProcessResult{};
}

TEST(VerifyCommand, BadUsageIsExitCode2AndSaysWhatWouldBeRight) {
    struct {
        std::vector<std::string> arguments;
        const char* message;
    } cases[] = {
        {{"--case", "stridez"}, "no case 'stridez'; there are rows_that_see_nothing, "},
        {{"--case", "random:x"}, "no case 'random:x'"},
        {{"--dtype", "fp64"}, "fp64"},
        {{"--config", "{\"block_k\":64}"}, "block_k"},
        {{"--seed", "-1"}, "seed is -1"},
        {{"--kernel", "attention_sideways"}, "unknown kernel 'attention_sideways': expected attention_forward"},
        {{"--device", "abacus:0"}, "abacus"},
        {{"--problem", "forward:sq-5"}, "seq_q is -5"},
        {{"--operation", "sideways"}, "unknown operation 'sideways': expected forward, backward, decode or all"},
        {{"--operation", "decode", "--case", "scale_zero"}, "no case 'scale_zero'; there are lengths, "},
        {{"--problem", "forward:sq5", "--all"}, "leave out --all"},
    };
    for (const auto& c : cases) {
        ProcessResult result = verify(c.arguments);
        EXPECT_EQ(result.exit_code, 2) << c.message;
        EXPECT_THAT(result.error, HasSubstr(c.message));
    }
}

TEST(VerifyCommand, OneCaseEndsWithItsCounts) {
    ProcessResult result = verify({"--case", "scale_zero", "--dtype", "fp32"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_TRUE(result.output.ends_with("\n1 passed, 0 failed\n")) << result.output;
}

TEST(VerifyCommand, ChecksEveryOperation) {
    ProcessResult result = verify({"--case", "empty_sequences", "--dtype", "fp32"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_TRUE(result.output.ends_with("\n3 passed, 0 failed\n")) << result.output;
    for (const char* problem : {"backward:hq2,hkv1,sq70,d32,fp32,causal,sink", "decode:b3,hq4,hkv2,sq2,skv=loguniform(4,200),d32,fp32,causal,page16,seed3",
                                "forward:b3,hq4,hkv2,sq=loguniform(4,100),d32,fp32,causal,packed"}) {
        result = verify({"--problem", problem, "--json"});
        ASSERT_EQ(result.exit_code, 0) << result.error;
        json report = json::parse(result.output, nullptr, false);
        EXPECT_EQ(report["passed"], 1) << result.output;
    }
}

TEST(VerifyCommand, SaysWhyCasesAreSkipped) {
    ProcessResult result = verify({"--kernel", "attention_materialized", "--case", "packed_starts", "--dtype", "fp32"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("   1 skipped: ")) << result.output;
    EXPECT_THAT(result.output, HasSubstr("attention_materialized takes no packed sequences"));
    result = verify({"--kernel", "attention_materialized", "--case", "packed_starts", "--dtype", "fp32", "--json"});
    json report = json::parse(result.output, nullptr, false);
    ASSERT_TRUE(report.is_object()) << result.output;
    EXPECT_EQ(report["operations"][0]["reasons_to_skip"][0]["times"], 1) << result.output;
}

TEST(VerifyCommand, OneProblemReportsItsErrorsAsJson) {
    ProcessResult result = verify({"--problem", "forward:hq2,sq70,d64,fp32,causal", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    json report = json::parse(result.output, nullptr, false);
    ASSERT_TRUE(report.is_object()) << result.output;
    EXPECT_EQ(report["passed"], 1);
    EXPECT_EQ(report["failed"], 0);
    EXPECT_EQ(report["results"][0]["rows"], 2 * 140);  // of out and of lse
    EXPECT_LE(report["results"][0]["out"]["max_error"], report["results"][0]["out"]["bound"]);
}

}  // namespace
}  // namespace tilewright
