// The whole contract on this machine's processor: every case in every type, both schedules, and random problems.
#include <gtest/gtest.h>

#include "verify/suite.h"

namespace tilewright {
namespace {

class Cpu : public testing::TestWithParam<Operation> {};

TEST_P(Cpu, KeepsTheNumericsContract) {
    Result<Backend*> backend = find_backend("cpu");
    ASSERT_TRUE(backend.ok());
    Result<std::unique_ptr<Device>> device = open_device("cpu:0");
    ASSERT_TRUE(device.ok()) << device.status().message();
    CompiledKernels kernels(**backend, **device);
    SuiteOptions options;
    options.operation = GetParam();
    Config other;
    other.block_q = 48, other.block_kv = 96, other.overlapped = 1, other.slack = 0, other.packs_heads = 1;
    if (GetParam() == Operation::backward) other = {}, other.block_q = 64, other.block_kv = 128, other.dq = 2;
    if (GetParam() == Operation::decode) other = {}, other.block_q = 4, other.block_kv = 32, other.packs_heads = 1, other.units = 2;
    options.configs = {Config{}, other};
    if (GetParam() == Operation::decode) options.configs[0].block_q = 16;
    Result<SuiteReport> report = run_suite(**device, kernels, options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    for (const CaseResult& result : report->results) {
        EXPECT_NE(result.outcome, CaseOutcome::failed) << result.name << ": " << result.message << "\n" << result.arguments;
        // fp32 tensors of 2^31 elements would need more than 8 GiB of addresses each; the gradient of a bias is not there.
        bool known = result.name == "far_offsets" || result.message.find("bias") != std::string::npos;
        EXPECT_TRUE(result.outcome != CaseOutcome::skipped || known) << result.name << ": " << result.message;
    }
}

INSTANTIATE_TEST_SUITE_P(, Cpu, testing::Values(Operation::forward, Operation::backward, Operation::decode), [](const auto& tested) { return name(tested.param); });

}  // namespace
}  // namespace tilewright
