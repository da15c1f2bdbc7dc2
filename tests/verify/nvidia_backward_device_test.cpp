// The backward on an NVIDIA device: gradients against the float64 reference. Skipped where there is none that has one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/family_text.h"
#include "verify/check_backward.h"

namespace tilewright {
namespace {

class NvidiaBackward : public testing::Test {
protected:
    static Device* device() {
        static std::unique_ptr<Device> opened = [] {
            Result<std::unique_ptr<Device>> device = open_device("nvidia:0");
            return device.ok() ? *std::move(device) : nullptr;
        }();
        return opened.get();
    }
    void SetUp() override {
        if (!device()) GTEST_SKIP() << "no NVIDIA device";
    }
    static CompiledKernels& kernels() {
        static CompiledKernels compiled(**find_backend("nvidia"), *device());
        return compiled;
    }
    static Problem problem(const std::string& text) {
        Result<Problem> parsed = parse_problem("backward:" + text);
        EXPECT_TRUE(parsed.ok()) << text;
        return *parsed;
    }
    static void expect_right(Workload& w, int runs = 1) {
        // Of the ways to dQ the one that is bitwise repeatable; nvidia_backward_sums_device_test.cpp has the others.
        Config config = default_backward_config(w.problem, device()->info().arch, true);
        if (config.dq) config.dq = takes_sm90_wide_backward(w.problem, device()->info().arch, true) ? 0 : 2;
        Result<CheckReport> report = check_backward(*device(), kernels(), w, config, runs);
        ASSERT_TRUE(report.ok()) << to_text(w.problem) << ": " << report.status().message();
        EXPECT_TRUE(report->passed) << to_text(w.problem) << ": " << report->failure;
    }
    static void expect_right(const std::string& text, const WorkloadOptions& options = {}) {
        Workload w = make_backward_workload(problem(text), options);
        expect_right(w);
    }
};

TEST_F(NvidiaBackward, IsRightAtEveryRaggedSizeUnderEveryMask) {
    for (const char* mask : {"", ",causal", ",causal,topleft", ",window20:7", ",window90:-1"})
        for (const char* sizes : {"sq1,skv1", "sq1,skv130", "sq130,skv1", "sq128,skv128", "sq127,skv129", "sq65,skv300", "sq300,skv63"})
            expect_right(std::string("hq2,hkv1,") + sizes + ",d64,bf16" + mask);
}

TEST_F(NvidiaBackward, IsRightInEveryTypeAndHeadDimension) {
    for (const char* type : {"bf16", "fp16"})
        for (const char* dims : {"d64", "d128", "d8", "d40,dv72", "d96", "d104,dv64", "d128,dv96", "d256", "d192,dv128", "d136,dv248", "d72,dv256"}) expect_right(std::string("b2,hq4,hkv2,sq150,skv190,causal,") + dims + "," + type);
}

TEST_F(NvidiaBackward, IsRightInEveryVariant) {
    for (const char* variant : {"softcap", "alibi", "sink", "softcap,alibi,sink,causal", "softcap,alibi,sink,window30:10"}) {
        WorkloadOptions options;
        options.softcap = 2;
        expect_right("b2,hq4,hkv2,sq140,skv160,d64,bf16," + std::string(variant), options);
    }
}

TEST_F(NvidiaBackward, IsRightInEveryAlignedLayout) {
    for (Layout layout : {Layout::heads_first, Layout::rows_first, Layout::packed, Layout::transposed, Layout::gapped}) {
        WorkloadOptions options;
        options.layout = layout, options.lse = layout != Layout::packed;
        expect_right("b2,hq2,hkv2,sq140,skv140,d64,bf16,causal", options);
    }
}

TEST_F(NvidiaBackward, OfNothingIsZeroOrNothing) {
    for (const char* type : {"bf16", "fp32"})
        for (const char* sizes : {"sq0,skv5", "sq5,skv0", "b0,sq5,skv5", "sq0,skv0"}) expect_right(std::string("hq2,hkv1,d64,sink,") + type + "," + sizes);
}

// What the copy engine cannot take, and sums that do not find registers beside it: products by warps.
class NvidiaBackwardByWarps : public NvidiaBackward, public testing::WithParamInterface<const char*> {};
std::string name_of(const testing::TestParamInfo<const char*>& tested) {
    std::string name = tested.param;
    std::ranges::replace(name, ',', '_');
    return name;
}

using NvidiaBackwardHeads = NvidiaBackwardByWarps;
INSTANTIATE_TEST_SUITE_P(, NvidiaBackwardHeads,
                         testing::Values("bf16,d5", "fp16,d37,dv19", "fp32,d37,dv19", "bf16,d256", "fp32,d256", "fp16,d192,dv128", "bf16,d128,dv256", "fp32,d64", "fp32,d128", "bf16,d256,softcap"), name_of);
TEST_P(NvidiaBackwardHeads, AreRightUnderMasks) {
    for (const char* mask : {",causal", ",window40:20"}) expect_right(std::string("b2,hq4,hkv2,sq150,skv190,") + GetParam() + mask);
}

using NvidiaBackwardSizes = NvidiaBackwardByWarps;
INSTANTIATE_TEST_SUITE_P(, NvidiaBackwardSizes, testing::Values("bf16,d128,softcap", "fp32,d64"), name_of);
TEST_P(NvidiaBackwardSizes, AreRightWhereTheyAreRagged) {
    for (const char* mask : {"", ",causal", ",causal,topleft", ",window90:-1"})
        for (const char* sizes : {"sq1,skv1", "sq1,skv130", "sq130,skv1", "sq128,skv128", "sq127,skv129", "sq65,skv300", "sq300,skv63"})
            expect_right(std::string("hq2,hkv1,") + sizes + "," + GetParam() + mask);
}

using NvidiaBackwardLayouts = NvidiaBackwardByWarps;
INSTANTIATE_TEST_SUITE_P(, NvidiaBackwardLayouts, testing::Values("bf16,d64", "fp16,d128", "fp32,d40"), name_of);
TEST_P(NvidiaBackwardLayouts, AreRightUnalignedAndAligned) {
    for (Layout layout : {Layout::unaligned, Layout::packed}) {
        WorkloadOptions options;
        options.layout = layout, options.softcap = 2;
        for (const char* variant : {",causal", ",softcap,alibi,sink,window30:10"}) expect_right(std::string("b2,hq2,hkv2,sq140,skv140,") + GetParam() + variant, options);
    }
}

TEST_F(NvidiaBackward, RowsThatSeeNothingContributeZeroAndAreNotRead) {
    Workload w = make_backward_workload(problem("hq2,hkv1,sq200,skv70,d64,bf16,causal,sink"));
    for (int64_t i = 0; i < 130; ++i) w.set(w.out_gradient, 0, 1, i, 3, NAN), w.set(w.query, 0, 1, i, 5, INFINITY);
    expect_right(w);
}

TEST_F(NvidiaBackward, WhatIsHiddenChangesNoBit) {
    for (const char* type : {"d64,bf16", "d256,bf16", "d40,fp32"}) {
        Workload clean = make_backward_workload(problem(std::string("hq2,hkv1,sq200,skv300,window20:10,topleft,") + type)), dirty = clean;
        expect_right(clean);
        for (int64_t j = 210; j < 300; ++j) dirty.set(dirty.key, 0, 0, j, 2, NAN), dirty.set(dirty.value, 0, 0, j, 3, -INFINITY);
        expect_right(dirty);
        for (size_t i = 0; i < clean.written().size(); ++i) EXPECT_EQ(clean.elements(*clean.written()[i]), dirty.elements(*dirty.written()[i]));
    }
}

TEST_F(NvidiaBackward, VisibleNanReachesWhatItMeetsAlone) {
    for (const char* type : {"d64,bf16", "d256,bf16", "d40,fp32", "d37,fp16"})
        for (int which = 0; which < 4; ++which)
            for (double special : {double(NAN), double(INFINITY)}) {
                Workload w = make_backward_workload(problem(std::string("hq2,hkv1,sq300,skv300,window20:10,") + type));
                w.set(which == 0 ? w.query : which == 1 ? w.key : which == 2 ? w.value : w.out_gradient, 0, 0, 150, 3, special);
                forward_results(w);
                expect_right(w);
            }
}

TEST_F(NvidiaBackward, GivesTheSameBitsTwentyTimes) {
    for (const char* dims : {"d128", "d256"}) {
        Workload w = make_backward_workload(problem(std::string("b2,hq4,hkv2,sq450,skv370,bf16,causal,sink,") + dims));
        expect_right(w, 20);
    }
}

}  // namespace
}  // namespace tilewright
