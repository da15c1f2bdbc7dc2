// The suite passes a right device, and every rule of the contract is missed by somebody: a fault that no case notices
// would mean that the rule is not tested.
#include "verify/suite.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/verify/fake_device.h"
#include "verify/cases.h"
#include "verify/random_problem.h"

namespace tilewright {
namespace {

using test::Fault;

class FakeKernels : public KernelSupply {
public:
    explicit FakeKernels(Fault fault = Fault::none) : fault_(fault) {}
    Result<Kernel*> kernel(const KernelSpec& spec) override {
        std::lock_guard lock(mutex_);
        kernels_.push_back(std::make_unique<test::FakeKernel>(spec, fault_));
        return kernels_.back().get();
    }

private:
    Fault fault_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Kernel>> kernels_;
};

SuiteReport report_of(Fault fault, const SuiteOptions& options) {
    test::FakeDevice device;
    FakeKernels kernels(fault);
    Result<SuiteReport> report = run_suite(device, kernels, options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *report : SuiteReport{};
}

SuiteOptions quick() {
    SuiteOptions options;
    options.configs[0].block_q = options.configs[0].block_kv = 16;
    options.random_problems = 30;
    return options;
}

TEST(Suite, ARightDevicePassesEveryCase) {
    SuiteOptions options = quick();
    options.dtypes = {DType::fp16};
    SuiteReport report = report_of(Fault::none, options);
    EXPECT_EQ(report.results.size(), all_cases().size() + 30);
    for (const CaseResult& result : report.results) EXPECT_EQ(result.outcome, CaseOutcome::passed) << result.name << ": " << result.message;
}

TEST(Suite, TheFirstConfigMeetsEveryTypeAndTheOthersOneEach) {
    SuiteOptions options = quick();
    options.configs.resize(4);
    options.only = "scale_zero";
    std::vector<DType> types;
    for (const CaseResult& result : report_of(Fault::none, options).results) types.push_back(result.dtype);
    EXPECT_EQ(types, (std::vector{DType::fp32, DType::fp16, DType::bf16, DType::fp16, DType::bf16, DType::fp32}));
}

struct Noticed {
    Fault fault;
    const char* by;  // the case that is about it
};

TEST(Suite, EveryFaultIsNoticedByTheCaseThatIsAboutIt) {
    const Noticed list[] = {
        {Fault::mask_off_by_one, "alignment"},          {Fault::window_off_by_one, "window"},       {Fault::missing_rescale, "moving_maximum"},
        {Fault::wrong_kv_head, "grouped_heads"},        {Fault::unnormalised, "scale_zero"},        {Fault::past_the_end, "garbage_in_padding"},
        {Fault::gap_written, "strides"},                {Fault::input_written, "tile_edges"},       {Fault::nan_dropped, "visible_nan"},
        {Fault::hidden_value_read, "hidden_garbage"},   {Fault::low_is_hidden, "lowest_bias"},      {Fault::offset_overflows, "huge_scores"},
        {Fault::offset_overflows, "extreme_bias"},      {Fault::bias_ignored, "broadcast_bias"},    {Fault::alibi_signed, "alibi"},
        {Fault::sink_ignored, "sink"},                  {Fault::softcap_after_bias, "everything"},  {Fault::scale_ignored, "negative_scale"},
        {Fault::scale_ignored, "odd_head_dims"},        {Fault::top_left, "alignment"},             {Fault::lse_base_two, "merge"},
        {Fault::last_row_skipped, "tile_edges"},        {Fault::empty_row_nan, "empty_sequences"},  {Fault::empty_row_nan, "rows_that_see_nothing"},
        {Fault::unrepeatable, "repeatability"},         {Fault::too_coarse, "long_sequences"},
        {Fault::hidden_value_read, "bias_hidden_garbage"}, {Fault::lse_ignores_null, "optional_lse"}, {Fault::offsets_in_31_bits, "far_offsets"},
        {Fault::zero_stride_dense, "broadcast_strides"},       {Fault::wide_value, "head_dims"},           {Fault::softcap_linear, "softcap"},
        {Fault::key_of_neighbour, "packed_lengths"},       {Fault::key_of_neighbour, "packed_neighbours"},  {Fault::diagonal_of_all, "packed_masks"},
        {Fault::starts_in_32_bits, "packed_starts"},       {Fault::lse_by_sequence, "packed_lengths"},      {Fault::row_behind_written, "packed_starts"},
        {Fault::sink_ignored, "packed_variants"},          {Fault::wrong_kv_head, "packed_grouped_heads"},  {Fault::wide_value, "packed_head_dims"},
        {Fault::gap_written, "packed_layouts"},            {Fault::unrepeatable, "packed_repeatability"},   {Fault::too_coarse, "packed_long_sequences"},
    };
    std::set<Fault> faults;
    std::set<std::string> cases;
    for (const Noticed& noticed : list) {
        faults.insert(noticed.fault), cases.insert(noticed.by);
        SuiteOptions options = quick();
        options.dtypes = {DType::bf16};
        options.only = noticed.by;
        if (noticed.fault == Fault::offset_overflows) options.dtypes = {DType::fp32};
        SuiteReport report = report_of(noticed.fault, options);
        ASSERT_EQ(report.results.size(), 1u);
        EXPECT_EQ(report.results[0].outcome, CaseOutcome::failed) << "fault " << int(noticed.fault) << " in " << noticed.by;
    }
    EXPECT_EQ(faults.size(), size_t(test::fault_count) - 1);
    for (const Case& one : all_cases()) EXPECT_TRUE(cases.contains(one.name)) << "no fault shows that " << one.name << " can fail";
}

TEST(Suite, AFailureSaysHowToRepeatIt) {
    SuiteOptions options = quick();
    options.only = "random:3";
    options.seed = 7;
    SuiteReport report = report_of(Fault::unnormalised, options);
    ASSERT_EQ(report.results.size(), 1u);
    const CaseResult& result = report.results[0];
    EXPECT_EQ(result.arguments, "--case random:3 --dtype fp32 --seed 7 --config '" + to_json(options.configs[0]) + "'");
    EXPECT_NE(result.message.find("forward:"), std::string::npos) << result.message;
}

TEST(Suite, AnUnknownCaseIsNamedBesideThoseThatExist) {
    test::FakeDevice device;
    FakeKernels kernels;
    SuiteOptions options;
    for (const char* only : {"stridez", "random:x", "random:"}) {
        options.only = only;
        Result<SuiteReport> report = run_suite(device, kernels, options);
        ASSERT_FALSE(report.ok()) << only;
        EXPECT_EQ(report.status().code(), StatusCode::invalid_argument);
        EXPECT_NE(report.status().message().find("strides"), std::string::npos);
    }
}

TEST(Suite, WhatTheDeviceCannotRunIsSkippedAndWhatFailsToCompileIsNot) {
    struct Refusing : KernelSupply {
        StatusCode code = StatusCode::unsupported;
        Result<Kernel*> kernel(const KernelSpec&) override { return Status(code, "no"); }
    } refusing;
    test::FakeDevice device;
    SuiteOptions options = quick();
    options.only = "strides";
    EXPECT_EQ(run_suite(device, refusing, options)->count(CaseOutcome::skipped), 3);
    refusing.code = StatusCode::compile;
    EXPECT_EQ(run_suite(device, refusing, options)->count(CaseOutcome::failed), 3);
}

TEST(RandomProblem, EveryOneIsLegalAndTheSeedFixesThem) {
    std::set<std::string> texts;
    for (uint64_t i = 0; i < 300; ++i) {
        RandomProblem random = random_problem(5, i, DType::bf16);
        EXPECT_TRUE(validate(random.problem).ok()) << describe(random);
        EXPECT_EQ(describe(random), describe(random_problem(5, i, DType::bf16)));
        texts.insert(to_text(random.problem));
    }
    EXPECT_GT(texts.size(), 290u);
}

}  // namespace
}  // namespace tilewright
