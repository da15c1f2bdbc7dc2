// The backward on this machine's processor: gradients of every variant against the float64 reference.
#include <gtest/gtest.h>

#include <cmath>

#include "verify/check_backward.h"

namespace tilewright {
namespace {

class CpuBackward : public testing::Test {
protected:
    static Device& device() {
        static std::unique_ptr<Device> opened = *open_device("cpu:0");
        return *opened;
    }
    static CompiledKernels& kernels() {
        static CompiledKernels compiled(**find_backend("cpu"), device());
        return compiled;
    }
    static Problem problem(const std::string& text) {
        Result<Problem> parsed = parse_problem("backward:" + text);
        EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.status().message();
        return *parsed;
    }
    static void expect_right(Workload& w, const Config& config = {}, int runs = 1) {
        Result<CheckReport> report = check_backward(device(), kernels(), w, config, runs);
        ASSERT_TRUE(report.ok()) << to_text(w.problem) << ": " << report.status().message();
        EXPECT_TRUE(report->passed) << to_text(w.problem) << ": " << report->failure;
    }
    static void expect_right(const std::string& text, const WorkloadOptions& options = {}, const Config& config = {}) {
        Workload w = make_backward_workload(problem(text), options);
        expect_right(w, config);
    }
    static std::vector<double> gradients(const Workload& w) {
        std::vector<double> all;
        for (const Tensor* tensor : w.written())
            for (double x : w.elements(*tensor)) all.push_back(x);
        return all;
    }
};

TEST_F(CpuBackward, IsRightAtEveryRaggedSizeUnderEveryMask) {
    for (const char* mask : {"", ",causal", ",causal,topleft", ",window20:7", ",window90:-1", ",window70:3,topleft"})
        for (const char* sizes : {"sq1,skv1", "sq1,skv130", "sq130,skv1", "sq64,skv64", "sq127,skv129", "sq65,skv200", "sq200,skv63"})
            expect_right(std::string("hq2,hkv1,") + sizes + ",d24,dv40,fp32" + mask);
}

TEST_F(CpuBackward, IsRightInEveryTypeAndHeadDimension) {
    for (const char* type : {"fp32", "bf16", "fp16"})
        for (const char* dims : {"d64", "d5", "d40,dv72", "d104,dv1", "d128,dv96"}) expect_right(std::string("hq4,hkv2,sq70,skv90,causal,") + dims + "," + type);
}

TEST_F(CpuBackward, IsRightInEveryVariant) {
    for (const char* variant : {"softcap", "alibi", "sink", "softcap,alibi,sink,causal", "softcap,alibi,sink,window30:10"})
        for (const char* type : {"fp32", "bf16"}) {
            WorkloadOptions options;
            options.softcap = 2;
            expect_right("b2,hq4,hkv2,sq70,skv60,d32," + std::string(variant) + "," + type, options);
        }
}

TEST_F(CpuBackward, IsRightInEveryLayout) {
    for (Layout layout : all_layouts) {
        WorkloadOptions options;
        options.layout = layout;
        for (const char* type : {"fp32", "bf16"}) expect_right(std::string("b2,hq2,hkv2,sq70,skv70,d24,causal,") + type, options);
    }
}

TEST_F(CpuBackward, TakesAnyScaleAndNoGradientOfLse) {
    for (float scale : {0.0f, -0.3f, 1.0f}) {
        WorkloadOptions options;
        options.scale = scale, options.lse = false;
        expect_right("hq2,hkv1,sq33,skv65,d16,fp32,causal", options);
    }
}

TEST_F(CpuBackward, TakesTilesOfOtherSizes) {
    Config config;
    config.block_q = 32, config.block_kv = 96;
    expect_right("hq4,hkv2,sq150,skv210,d40,fp32,window50:20", {}, config);
    config.block_q = 128, config.block_kv = 32;
    expect_right("hq4,hkv2,sq150,skv210,d40,fp32,window50:20", {}, config);
}

// dK and dV each by a pass of its own: more products, the same sums in the same order.
TEST_F(CpuBackward, GivesTheSameBitsInTwoPassesOverKeys) {
    Workload together = make_backward_workload(problem("hq4,hkv2,sq90,skv110,d24,dv40,bf16,causal,softcap")), apart = together;
    expect_right(together);
    std::vector<BackwardLaunch> plan = backward_plan(apart.problem, {}, device().info().arch, true);
    ASSERT_EQ(plan[1].kind, KernelKind::attention_backward_keys);
    plan[1].kind = KernelKind::attention_backward_keys_alone;
    plan.push_back({KernelKind::attention_backward_values_alone, plan[1].config});
    Result<CheckReport> report = check_backward(device(), kernels(), apart, plan);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_TRUE(report->passed) << report->failure;
    EXPECT_EQ(gradients(together), gradients(apart));
}

TEST_F(CpuBackward, TakesStridesOfZero) {
    Workload w = make_backward_workload(problem("b2,hq2,hkv2,sq40,skv40,d16,fp32,causal"));
    w.out_gradient.strides = {0, 0, 0, 1};
    w.key.strides[0] = 0;
    forward_results(w);
    expect_right(w);
}

TEST_F(CpuBackward, OfNothingIsZeroOrNothing) {
    for (const char* sizes : {"sq0,skv5", "sq5,skv0", "b0,sq5,skv5", "sq0,skv0"}) {
        Workload w = make_backward_workload(problem(std::string("hq2,hkv1,d8,fp32,sink,") + sizes));
        expect_right(w);
    }
}

TEST_F(CpuBackward, RowsThatSeeNothingContributeZeroAndAreNotRead) {
    for (const char* sink : {"", ",sink"}) {
        Workload w = make_backward_workload(problem(std::string("hq2,hkv1,sq100,skv40,d16,fp32,causal") + sink));
        for (int64_t i = 0; i < 60; ++i) w.set(w.out_gradient, 0, 1, i, 3, NAN), w.set(w.query, 0, 1, i, 5, INFINITY);
        expect_right(w);
        for (double x : gradients(w)) ASSERT_TRUE(std::isfinite(x));
    }
}

TEST_F(CpuBackward, WhatIsHiddenChangesNoBit) {
    for (const char* type : {"fp32", "bf16"}) {
        Workload clean = make_backward_workload(problem(std::string("hq2,hkv1,sq100,skv150,d16,window20:10,topleft,") + type)), dirty = clean;
        expect_right(clean);
        for (int64_t j = 110; j < 150; ++j) dirty.set(dirty.key, 0, 0, j, 2, NAN), dirty.set(dirty.value, 0, 0, j, 3, -INFINITY);
        expect_right(dirty);
        EXPECT_EQ(gradients(clean), gradients(dirty));
    }
}

// NaN or infinity in one query, key, value or output gradient reaches the gradients of all that it meets, and of nothing else.
TEST_F(CpuBackward, VisibleNanAndInfinityReachWhatTheyMeetAlone) {
    for (int which = 0; which < 4; ++which)
        for (double special : {double(NAN), double(INFINITY)}) {
            Workload w = make_backward_workload(problem("hq2,hkv1,sq100,skv100,d16,fp32,window20:10"));
            const Tensor& tensor = which == 0 ? w.query : which == 1 ? w.key : which == 2 ? w.value : w.out_gradient;
            w.set(tensor, 0, 0, 50, 3, special);
            forward_results(w);
            expect_right(w);
        }
}

TEST_F(CpuBackward, GivesTheSameBitsTwentyTimes) {
    Workload w = make_backward_workload(problem("b2,hq4,hkv2,sq150,skv170,d32,bf16,causal,sink"));
    expect_right(w, {}, 20);
}

TEST_F(CpuBackward, SumsTheGradientOfABiasOverWhatItIsBroadcastOver) {
    for (unsigned pattern = 0; pattern < 16; ++pattern)
        for (const char* parts : {"b2,hq4,hkv2,sq70,skv90,d16,fp32,bias,causal", "b3,hq2,hkv1,sq150,skv33,d24,bf16,bias,softcap,alibi,sink,window40:7"}) {
            WorkloadOptions options;
            options.softcap = 2;
            for (unsigned i = 0; i < 4; ++i) options.broadcast_bias[i] = pattern >> i & 1;
            Config config;
            if (pattern % 2) config.block_q = 32, config.block_kv = 96;
            expect_right(parts, options, config);
        }
}

TEST_F(CpuBackward, OfNothingTheGradientOfABiasIsZero) {
    WorkloadOptions options;
    options.broadcast_bias = {true, false, true, true};
    for (const char* sizes : {"sq0,skv5", "sq5,skv0", "b0,sq5,skv5"}) {
        Workload w = make_backward_workload(problem(std::string("hq2,hkv1,d8,fp32,bias,") + sizes), options);
        expect_right(w);
        EXPECT_EQ(w.elements(w.bias_gradient), std::vector<double>(2, 0));
    }
}

}  // namespace
}  // namespace tilewright
