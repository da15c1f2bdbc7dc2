// The built command: exit codes, messages that name value and limit, JSON that parses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "core/process.h"

namespace tilewright {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ProcessResult tilewright_command(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), TILEWRIGHT_COMMAND);
    Result<ProcessResult> result = run_process({.arguments = std::move(arguments), .timeout_seconds = 60});
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *result : ProcessResult{};
}

const char* const classic = "forward:b1,hq1,hkv1,sq4096,skv4096,d64,bf16";

TEST(Command, HelpNamesEveryCommandAndEveryCommandHasHelpAndJson) {
    ProcessResult help = tilewright_command({"--help"});
    EXPECT_EQ(help.exit_code, 0);
    for (const cli::Command& command : cli::commands()) {
        if (!*command.summary) continue;  // not for people
        EXPECT_THAT(help.output, HasSubstr(command.name));
        ProcessResult own = tilewright_command({command.name, "--help"});
        EXPECT_EQ(own.exit_code, 0) << command.name << own.error;
        EXPECT_THAT(own.output, HasSubstr(command.name));
    }
}

TEST(Command, VersionIsThatOfTheBuild) {
    ProcessResult result = tilewright_command({"--version"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, testing::MatchesRegex("tilewright [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Command, BadUsageIsExitCode2AndSaysWhatWouldBeRight) {
    struct {
        std::vector<std::string> arguments;
        const char* message;
    } cases[] = {
        {{}, "no command given"},
        {{"explode"}, "unknown command 'explode': expected one of "},
        {{"explain", "--bogus"}, "--bogus"},
        {{"explain", "word"}, "options only"},
        {{"explain"}, "give either --problem TEXT or --model NAME"},
        {{"explain", "--problem", classic, "--model", "vit-l"}, "both --problem and --model"},
        {{"explain", "--problem", "forward:sq-5"}, "seq_q is -5; it must be from 0"},
        {{"explain", "--problem", "forward:sq64,fp64"}, "fp64"},
        {{"explain", "--problem", "forward:hq3,hkv2,sq64"}, "heads_q is 3; it must be a multiple of heads_kv, 2"},
        {{"explain", "--problem", "forward:sq99999999999"}, "536870912"},
        {{"explain", "--problem", classic, "--arch", "sm_42"}, "unknown architecture 'sm_42': known are cpu, sm_80"},
        {{"explain", "--model", "gpt-9"}, "unknown model 'gpt-9': known are llama-3.1-8b"},
        {{"explain", "--model", "vit-l", "--phase", "decode"}, "no decode phase"},
        {{"explain", "--model", "vit-l", "--phase", "sideways"}, "expected prefill or decode"},
        {{"explain", "--model", "vit-l", "--seq", "many"}, "--seq"},
        {{"explain", "--model", "vit-l", "--batch", "-1"}, "batch is -1; it must be from 0"},
        {{"explain", "--problem", classic, "--top", "-3"}, "--top is -3; it must be 0 or more"},
    };
    for (const auto& c : cases) {
        ProcessResult result = tilewright_command(c.arguments);
        EXPECT_EQ(result.exit_code, 2) << c.message;
        EXPECT_THAT(result.error, HasSubstr(c.message));
        EXPECT_EQ(result.output, "") << c.message;
    }
}

TEST(Command, ExplainKnowsTheScoreMatrixOfTheClassicExample) {
    ProcessResult result = tilewright_command({"explain", "--problem", classic, "--arch", "sm_90a", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    json explanation = json::parse(result.output);
    EXPECT_EQ(explanation["score_matrix_bytes"], 33554432);
    EXPECT_EQ(explanation["compulsory_bytes"], 4 * 4096 * 64 * 2 + 4096 * 4);
    EXPECT_EQ(explanation["problem"], classic);
    ASSERT_FALSE(explanation["tile_shapes"].empty());
    for (const json& shape : explanation["tile_shapes"]) {
        EXPECT_LE(shape["shared_bytes"], shape["shared_bytes_limit"]);
        EXPECT_EQ(shape["shared_bytes_limit"], 232448);
        EXPECT_GE(shape["resident_blocks"], 1);
        EXPECT_GT(shape["bytes_moved"], explanation["compulsory_bytes"]);
        EXPECT_LT(shape["bytes_moved"], explanation["standard"]["bytes_moved"]);
        EXPECT_GT(shape["predicted_us"], explanation["roofline_us"]);
    }
}

TEST(Command, ExplainPrintsATableForPeopleOnEveryArchitecture) {
    for (const char* arch : {"cpu", "sm_80", "sm_90a", "gfx90a", "gfx942", "gfx1100", "gfx1201"}) {
        ProcessResult result = tilewright_command({"explain", "--problem", classic, "--arch", arch});
        EXPECT_EQ(result.exit_code, 0) << arch << result.error;
        EXPECT_THAT(result.output, HasSubstr("33554432 bytes (32.0 MiB)"));
        EXPECT_THAT(result.output, HasSubstr("untuned choice"));
    }
}

TEST(Command, DevicesHasTheProcessorAndAReasonForEveryAbsentBackend) {
    ProcessResult result = tilewright_command({"devices", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    json devices = json::parse(result.output);
    ASSERT_EQ(devices["backends"].size(), 3u);
    EXPECT_EQ(devices["backends"][0]["devices"][0]["id"], "cpu:0");
    for (const json& backend : devices["backends"]) EXPECT_TRUE(!backend["devices"].empty() || backend.contains("devices_absent")) << backend.dump();
    EXPECT_EQ(tilewright_command({"devices"}).exit_code, 0);
}

TEST(Command, ModelsListsShapesWithSources) {
    json models = json::parse(tilewright_command({"models", "--json"}).output);
    EXPECT_EQ(models.size(), 10u);
    for (const json& model : models) EXPECT_FALSE(model["source"].get<std::string>().empty());
}

TEST(Durations, AreSecondsOrHaveAUnit) {
    EXPECT_EQ(*cli::parse_duration("90"), 90);
    EXPECT_EQ(*cli::parse_duration("1.5s"), 1.5);
    EXPECT_EQ(*cli::parse_duration("5m"), 300);
    EXPECT_EQ(*cli::parse_duration("2h"), 7200);
    for (const char* wrong : {"", "s", "-3", "0", "inf", "nan", "5x", "5 m", "5mm"}) EXPECT_FALSE(cli::parse_duration(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace tilewright
