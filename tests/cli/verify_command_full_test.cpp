// verify --all over a stand-in for NVIDIA's driver: nothing runs, so every case fails and is listed with its config.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/process.h"
#include "db/defaults.h"

namespace tilewright {
namespace {

TEST(VerifyCommand, AllTakesEveryKernelThatShipsAsAWinnerOnce) {
    const Result<ProcessResult> run = run_process({.arguments = {TILEWRIGHT_COMMAND, "verify", "--device", "nvidia:0", "--operation", "forward", "--all", "--case", "scale_zero", "--dtype", "bf16", "--json"},
                                                   .environment = {{"TILEWRIGHT_CUDA_LIBRARY", TILEWRIGHT_FAKE_CUDA}},
                                                   .timeout_seconds = 300});
    ASSERT_TRUE(run.ok()) << run.status().message();
    const auto report = nlohmann::json::parse(run->output, nullptr, false);
    if (!report.is_object()) GTEST_SKIP() << run->error;
    const auto& operation = report["operations"][0];
    // The order of work is no other kernel.
    const auto kernel_of = [](Config config) {
        config.section_kb = 0;
        return to_json(config);
    };
    std::multiset<std::string> seen;
    for (const auto& failure : operation["failures"]) {
        const Result<Config> config = parse_config(failure["config"].dump());
        ASSERT_TRUE(config.ok()) << config.status().message();
        seen.insert(kernel_of(*config));
        if (failure["message"].get<std::string>().find("compil") != std::string::npos) GTEST_SKIP() << failure["message"];
    }
    EXPECT_EQ(seen.size() + operation["skipped"].get<size_t>(), operation["configs"].get<size_t>());
    int winners = 0;
    for (const MeasurementRow& row : default_rows()) {
        if (row.problem.operation != Operation::forward || row.device.arch != "sm_90a") continue;
        ++winners;
        EXPECT_EQ(seen.count(kernel_of(row.measurement.config)), 1u) << to_json(row.measurement.config);
    }
    EXPECT_GT(winners, 0);
}

}  // namespace
}  // namespace tilewright
