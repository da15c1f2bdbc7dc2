// The cases of backward and decode pass a right device, and each of some faults is noticed by the case that is about it.
#include <gtest/gtest.h>

#include "tests/verify/fake_operations.h"
#include "verify/cases.h"
#include "verify/suite.h"

namespace tilewright {
namespace {

using test::OperationFault;

class FakeSupply : public KernelSupply {
public:
    Result<Kernel*> kernel(const KernelSpec& spec) override {
        std::lock_guard lock(mutex_);
        kernels_.push_back(std::make_unique<test::FakeKernel>(spec));
        return kernels_.back().get();
    }

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Kernel>> kernels_;
};

std::vector<CaseResult> results(Operation operation, OperationFault fault, const std::string& only) {
    test::FakeOperations device(fault);
    FakeSupply supply;
    SuiteOptions options;
    options.operation = operation, options.only = only, options.random_problems = 12;
    options.dtypes = {DType::bf16};
    options.configs[0].block_q = options.configs[0].block_kv = 16;
    Result<SuiteReport> report = run_suite(device, supply, options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report->results : std::vector<CaseResult>{};
}

TEST(OperationSuite, ARightDevicePassesEveryCase) {
    for (Operation operation : {Operation::backward, Operation::decode}) {
        std::vector<CaseResult> all = results(operation, OperationFault::none, "");
        EXPECT_EQ(all.size(), all_cases(operation).size() + 12);
        for (const CaseResult& result : all) EXPECT_EQ(result.outcome, CaseOutcome::passed) << name(operation) << " " << result.name << ": " << result.message;
    }
}

TEST(OperationSuite, EveryFaultIsNoticedByTheCaseThatIsAboutIt) {
    struct Noticed {
        Operation operation;
        OperationFault fault;
        const char* by;
    };
    constexpr Operation backward = Operation::backward, decode = Operation::decode;
    const Noticed list[] = {
        {backward, OperationFault::delta_forgotten, "window"},      {backward, OperationFault::one_head_of_group, "grouped_heads"},
        {backward, OperationFault::unscaled, "packed_sequences"},
        {backward, OperationFault::unscaled, "scales"},             {backward, OperationFault::lse_gradient_ignored, "optional_lse"},
        {backward, OperationFault::slope_ignored, "softcap"},       {backward, OperationFault::sink_signed, "sink"},
        {backward, OperationFault::nan_kept, "hidden_garbage"},     {backward, OperationFault::nan_kept, "rows_that_see_nothing"},
        {backward, OperationFault::dense_out_gradient, "broadcast_strides"}, {backward, OperationFault::dense_out_gradient, "strides"},
        {backward, OperationFault::bias_of_last_batch, "broadcast_bias"}, {backward, OperationFault::bias_through_softcap, "bias"},
        {backward, OperationFault::bias_garbage_kept, "bias_hidden_garbage"},
        {decode, OperationFault::lengths_ignored, "lengths"},       {decode, OperationFault::lengths_ignored, "unused_slots"},
        {decode, OperationFault::table_ignored, "pages"},           {decode, OperationFault::table_ignored, "shared_pages"},
        {decode, OperationFault::tail_of_longest, "causal_tail"},   {decode, OperationFault::tail_of_longest, "window"},
        {decode, OperationFault::last_key_dropped, "splits"},       {decode, OperationFault::last_key_dropped, "grouped_heads"},
        {decode, OperationFault::sink_dropped, "sink"},
    };
    for (const Noticed& noticed : list) {
        std::vector<CaseResult> one = results(noticed.operation, noticed.fault, noticed.by);
        ASSERT_EQ(one.size(), 1u);
        EXPECT_EQ(one[0].outcome, CaseOutcome::failed) << name(noticed.operation) << " fault " << int(noticed.fault) << " in " << noticed.by;
    }
}

TEST(OperationSuite, AFailureSaysHowToRepeatIt) {
    std::vector<CaseResult> one = results(Operation::decode, OperationFault::lengths_ignored, "lengths");
    ASSERT_EQ(one.size(), 1u);
    EXPECT_TRUE(one[0].arguments.starts_with("--operation decode --case lengths --dtype bf16 --seed 1 --config ")) << one[0].arguments;
}

}  // namespace
}  // namespace tilewright
