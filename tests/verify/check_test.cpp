// The check passes a right kernel and catches a wrong one, whatever is wrong with it.
#include "verify/check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/verify/fake_device.h"
#include "verify/element.h"

namespace tilewright {
namespace {

using test::Fault;
using test::FakeDevice;
using test::FakeKernel;

Problem parsed(const char* text) {
    Result<Problem> problem = parse_problem(text);
    EXPECT_TRUE(problem.ok()) << problem.status().message();
    return problem.ok() ? *problem : Problem{};
}

CheckReport checked(const char* text, Fault fault, CheckOptions options = {}) {
    FakeDevice device;
    Result<PreparedCheck> prepared = prepare_check(parsed(text), options);
    EXPECT_TRUE(prepared.ok());
    ReadyOperation operation{*plan_operation(prepared->workload.problem, {}, device.info().arch, traits_of(prepared->workload)), {}};
    FakeKernel kernel(operation.plan.kernels[0], fault);
    operation.kernels = {&kernel};
    Result<CheckReport> report = check(device, operation, *prepared);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return *report;
}

TEST(Check, PassesARightKernelInEveryLayoutAndType) {
    for (const char* dtype : {"fp32", "fp16", "bf16"})
        for (Layout layout : all_layouts)
            for (const char* shape : {"b2,hq4,hkv2,sq9,skv9,d16", "b2,hq4,hkv2,sq9,skv20,d5,dv7,causal", "b1,hq2,hkv1,sq20,skv9,d8,window3:2,softcap,bias,alibi,sink"}) {
                CheckOptions options;
                options.workload.layout = layout;
                options.max_rows = 0;
                std::string text = std::string("forward:") + shape + "," + dtype;
                CheckReport report = checked(text.c_str(), Fault::none, options);
                EXPECT_TRUE(report.passed) << text << " " << name(layout) << ": " << report.failure;
                EXPECT_GT(report.tensors.at(0).comparison.bound, 0);
            }
}

// Data that stay on the device: what a wrong kernel did to its inputs is not the next one's fault.
TEST(Check, PutsRightWhatAKernelWroteIntoItsInputs) {
    FakeDevice device;
    PreparedCheck prepared = *prepare_check(parsed("forward:sq40,d16,fp32"));
    DeviceWorkload on_device = *DeviceWorkload::upload(device, prepared.workload);
    ReadyOperation operation{*plan_operation(prepared.workload.problem, {}, device.info().arch, traits_of(prepared.workload)), {}};
    for (Fault fault : {Fault::none, Fault::input_written, Fault::none, Fault::past_the_end, Fault::none}) {
        FakeKernel kernel(operation.plan.kernels[0], fault);
        operation.kernels = {&kernel};
        CheckReport report = *check(device, operation, on_device, prepared);
        EXPECT_EQ(report.passed, fault == Fault::none) << report.failure;
    }
}

TEST(Check, PassesEmptySizes) {
    for (const char* text : {"forward:b0,sq5,skv5,fp32", "forward:sq0,skv5,fp32", "forward:sq5,skv0,fp32", "forward:sq5,skv0,fp32,sink"}) {
        CheckReport report = checked(text, Fault::none);
        EXPECT_TRUE(report.passed) << text << ": " << report.failure;
    }
}

struct Broken {
    Fault fault;
    const char* problem;
    Layout layout = Layout::rows_first;
};

TEST(Check, CatchesEveryFault) {
    const Broken list[] = {
        {Fault::mask_off_by_one, "forward:sq40,skv64,d16,bf16,causal"},
        {Fault::window_off_by_one, "forward:sq40,skv64,d16,bf16,window9:3"},
        {Fault::missing_rescale, "forward:sq40,d16,fp16"},
        {Fault::wrong_kv_head, "forward:hq4,hkv2,sq8,d16,fp16"},
        {Fault::unnormalised, "forward:sq40,d16,fp16"},
        {Fault::past_the_end, "forward:sq40,d16,fp16"},
        {Fault::gap_written, "forward:sq40,d16,fp16", Layout::gapped},
        {Fault::input_written, "forward:sq40,d16,fp32"},
        {Fault::bias_ignored, "forward:sq40,d16,bf16,bias"},
        {Fault::alibi_signed, "forward:sq40,d16,fp16,alibi"},
        {Fault::sink_ignored, "forward:sq40,d16,fp16,sink"},
        {Fault::softcap_after_bias, "forward:sq40,d16,fp16,softcap,bias"},
        {Fault::top_left, "forward:sq40,skv64,d16,bf16,causal"},
        {Fault::lse_base_two, "forward:sq40,d16,bf16"},
        {Fault::last_row_skipped, "forward:b2,hq2,sq40,d16,bf16"},
        {Fault::empty_row_nan, "forward:sq40,skv20,d16,bf16,causal"},
        {Fault::too_coarse, "forward:sq40,skv200,d16,bf16"},
    };
    for (const Broken& broken : list) {
        CheckOptions options;
        options.workload.layout = broken.layout;
        EXPECT_TRUE(checked(broken.problem, Fault::none, options).passed) << broken.problem;
        CheckReport report = checked(broken.problem, broken.fault, options);
        EXPECT_FALSE(report.passed) << "fault " << int(broken.fault) << " in " << broken.problem;
        EXPECT_FALSE(report.failure.empty());
    }
}

TEST(Check, ASampleStillNoticesRowsThatWereNotWritten) {
    CheckOptions options;
    options.max_rows = 5;
    CheckReport report = checked("forward:b4,hq4,sq64,d8,bf16", Fault::last_row_skipped, options);
    EXPECT_FALSE(report.passed);
    EXPECT_EQ(report.rows, 2 * 5);  // of out and of lse
}

TEST(Check, RunsThatDifferInABitAreCaught) {
    CheckOptions options;
    options.runs = 3;
    EXPECT_TRUE(checked("forward:sq9,d8,bf16", Fault::none, options).passed);
    EXPECT_FALSE(checked("forward:sq9,d8,bf16", Fault::unrepeatable, options).passed);
}

TEST(Check, AFailureNamesTheRowTheValuesAndTheBound) {
    CheckReport report = checked("forward:b2,hq2,sq9,d8,bf16", Fault::unnormalised);
    EXPECT_NE(report.failure.find("bound"), std::string::npos) << report.failure;
    EXPECT_NE(report.failure.find("row"), std::string::npos) << report.failure;
    EXPECT_NE(checked("forward:sq9,d8,bf16", Fault::past_the_end).failure.find("past its end"), std::string::npos);
}

TEST(Compare, NanOrInfinityOnOneSideOnlyFailsAndOnBothSidesDoesNot) {
    auto passes = [](double x, double r) { return compare(std::vector{x, 1.0}, std::vector{r, 1.0}, std::vector{r, 1.0}, "x").passed; };
    EXPECT_TRUE(passes(NAN, NAN));
    EXPECT_TRUE(passes(-INFINITY, -INFINITY));
    EXPECT_FALSE(passes(INFINITY, -INFINITY));
    EXPECT_FALSE(passes(NAN, 0));
    EXPECT_FALSE(passes(0, NAN));
    EXPECT_FALSE(passes(INFINITY, 3e38));
    EXPECT_FALSE(passes(NAN, -INFINITY));
}

TEST(Compare, TheBoundIsTwiceTheNaiveErrorPlusAMillionthOfTheLargest) {
    auto passes = [](double x) { return compare(std::vector{x, 8.0}, std::vector{1.0, 8.0}, std::vector{1.5, 8.0}, "x").passed; };
    EXPECT_TRUE(passes(2.0));
    EXPECT_TRUE(passes(2.000007));
    EXPECT_FALSE(passes(2.000009));
}

// A key and a sink of one score: both probabilities are 1/2, which the naive form rounds to itself.
TEST(Compare, AnOutputMayBeOneRoundingOffWhereTheNaiveFormIsExactByLuck) {
    for (const char* text : {"forward:sq1,skv1,d8,bf16,sink", "forward:sq1,skv1,d8,fp16,sink", "decode:sq1,skv1,d8,bf16,sink"}) {
        WorkloadOptions options;
        options.lengths = {1};
        Workload w = make_workload(parsed(text), options);
        w.fill(w.query, 0), w.fill(w.sink, 0), w.fill(w.value, 2), w.fill(w.lse, std::log(2));
        for (int off : {0, 1, 2}) {
            w.fill(w.out, 1), w.set(w.out, 0, 0, 0, 5, 1 + off * epsilon(w.problem.dtype));
            EXPECT_EQ(compare_outputs(w, expected_rows(w, {})).passed, off < 2) << text << " off by " << off;
        }
    }
}

TEST(Workload, TheNumbersAreTheSameInEveryLayout) {
    Problem p = parsed("forward:b2,hq4,hkv2,sq6,skv6,d8,fp16,bias");
    WorkloadOptions options;
    Workload first = make_workload(p, options);
    Answer answer = reference_forward(first.inputs(), all_rows(p));
    for (Layout layout : all_layouts) {
        options.layout = layout;
        Workload w = make_workload(p, options);
        EXPECT_EQ(reference_forward(w.inputs(), all_rows(p)).out, answer.out) << name(layout);
        EXPECT_EQ(traits_of(w).aligned, layout != Layout::unaligned) << name(layout);
    }
    options.seed = 2;
    EXPECT_NE(reference_forward(make_workload(p, options).inputs(), all_rows(p)).out, answer.out);
}

}  // namespace
}  // namespace tilewright
