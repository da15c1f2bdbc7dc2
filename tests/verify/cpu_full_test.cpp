// The whole contract on this machine's processor: every case in every type, both schedules, and random problems.
#include <gtest/gtest.h>

#include "verify/suite.h"

namespace tilewright {
namespace {

TEST(Cpu, KeepsTheNumericsContract) {
    Result<Backend*> backend = find_backend("cpu");
    ASSERT_TRUE(backend.ok());
    Result<std::unique_ptr<Device>> device = open_device("cpu:0");
    ASSERT_TRUE(device.ok()) << device.status().message();
    CompiledKernels kernels(**backend, **device);
    SuiteOptions options;
    Config overlapped;
    overlapped.block_q = 48, overlapped.block_kv = 96, overlapped.overlapped = 1, overlapped.slack = 0, overlapped.packs_heads = 1;
    options.configs = {Config{}, overlapped};
    Result<SuiteReport> report = run_suite(**device, kernels, options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    for (const CaseResult& result : report->results) {
        EXPECT_NE(result.outcome, CaseOutcome::failed) << result.name << ": " << result.message << "\n" << result.arguments;
        // fp32 tensors of 2^31 elements would need more than 8 GiB of addresses each.
        EXPECT_TRUE(result.outcome != CaseOutcome::skipped || result.name == "far_offsets") << result.name << ": " << result.message;
    }
}

}  // namespace
}  // namespace tilewright
