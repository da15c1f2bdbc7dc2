// tilewright compile: the numbers of the acceptance, files, bundles, bad usage.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "backends/bundle.h"
#include "core/process.h"
#include "core/scratch_directory.h"

namespace tilewright {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const char* const small = "forward:b1,hq2,hkv1,sq64,skv64,d32,fp16,causal";

ProcessResult compile(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {TILEWRIGHT_COMMAND, "compile"});
    Result<ProcessResult> result = run_process({.arguments = std::move(arguments), .timeout_seconds = 120});
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *result : ProcessResult{};
}

bool has_amd_compiler() { return !find_program("clang++-19").empty(); }

TEST(CompileCommand, PrintsResourcesOfAnAmdKernel) {
    if (!has_amd_compiler()) GTEST_SKIP() << "clang++-19 is not installed";
    ProcessResult result = compile({"--arch", "gfx942", "--problem", "forward:b4,hq16,hkv16,sq4096,skv4096,d128,bf16", "--resources", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    json resources = json::parse(result.output);
    for (const char* key :
         {"vgpr", "agpr", "sgpr", "lds_bytes", "scratch_bytes", "vgpr_spills", "sgpr_spills", "waves_per_simd", "wave_size", "matrix_instructions"})
        EXPECT_TRUE(resources.contains(key)) << key;
    EXPECT_EQ(resources["wave_size"], 64);
    EXPECT_GT(resources["matrix_instructions"], 0);
    EXPECT_EQ(resources["vgpr_spills"], 0);
}

TEST(CompileCommand, WritesABundleThatReadsBack) {
    if (!has_amd_compiler()) GTEST_SKIP() << "clang++-19 is not installed";
    auto scratch = ScratchDirectory::create();
    ASSERT_TRUE(scratch.ok());
    ProcessResult result =
        compile({"--arch", "gfx1100", "--problem", small, "--emit-bundle", scratch->file("bundle"), "--output", scratch->file("object"), "--rows", "5"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    auto bundle = read_bundle(scratch->file("bundle"));
    ASSERT_TRUE(bundle.ok()) << bundle.status().message();
    EXPECT_EQ(bundle->problem, small);
    ASSERT_EQ(bundle->launches.size(), 1u);
    EXPECT_EQ(bundle->launches[0].code, *read_file(scratch->file("object")));
    EXPECT_EQ(bundle->expected[0].rows.size(), 5u);

    result = compile({"--arch", "gfx1100", "--problem", "backward:b1,hq2,hkv1,sq64,skv64,d32,fp16,causal", "--emit-bundle", scratch->file("chain"), "--output", scratch->file("object")});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    bundle = read_bundle(scratch->file("chain"));
    ASSERT_TRUE(bundle.ok()) << bundle.status().message();
    ASSERT_EQ(bundle->launches.size(), 3u);
    for (const BundleLaunch& launch : bundle->launches) EXPECT_EQ(launch.code, *read_file(scratch->file("object." + launch.kernel)));
}

TEST(CompileCommand, BadUsageIsExitCode2AndOneSentence) {
    struct {
        std::vector<std::string> arguments;
        const char* message;
    } cases[] = {
        {{}, "give either --problem TEXT or --model NAME"},
        {{"--arch", "gfx9000", "--problem", small}, "unknown architecture 'gfx9000'"},
        {{"--problem", small, "--config", "{\"block_q\":7}"}, "block_q must be a multiple of 16"},
        {{"--problem", small, "--config", "{\"blok\":7}"}, "blok"},
        {{"--problem", small, "--rows", "-1"}, "rows is -1"},
        {{"--problem", "forward:sq64,d64,fp32"}, "not fp32"},
    };
    for (const auto& one : cases) {
        ProcessResult result = compile(one.arguments);
        EXPECT_EQ(result.exit_code, 2) << one.message;
        EXPECT_THAT(result.error, HasSubstr(one.message));
        EXPECT_EQ(result.output, "");
    }
}

}  // namespace
}  // namespace tilewright
