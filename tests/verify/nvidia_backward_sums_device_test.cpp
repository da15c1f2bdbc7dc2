// The backward on sm_90a with each way to the gradient of the queries, and more keys than blocks share at a time. Skipped on other devices.
#include <gtest/gtest.h>

#include "backends/backward_plan.h"
#include "backends/family_text.h"
#include "verify/check_backward.h"

namespace tilewright {
namespace {

Device* device() {
    static std::unique_ptr<Device> opened = [] {
        Result<std::unique_ptr<Device>> found = open_device("nvidia:0");
        return found.ok() && (*found)->info().arch.family == Family::sm90 ? *std::move(found) : nullptr;
    }();
    return opened.get();
}

// 3: as 1, 4: as 2, with the work row by row in the pass over keys.
class NvidiaBackwardSums : public testing::TestWithParam<int> {
protected:
    void SetUp() override {
        if (!device()) GTEST_SKIP() << "no sm_90a device";
    }
    static void expect_right(const std::string& text, int runs = 1) {
        static CompiledKernels kernels(**find_backend("nvidia"), *device());
        Workload w = make_backward_workload(*parse_problem("backward:" + text));
        if (GetParam() >= 2 && takes_sm90_wide_backward(w.problem, device()->info().arch, true)) return;  // which have no such order, and no room
        Config config = default_backward_config(w.problem, device()->info().arch, true);
        if (GetParam() == 0) config.block_q = 64;
        config.persistent = GetParam() >= 3;
        config.dq = config.persistent ? GetParam() - 2 : GetParam();
        Result<CheckReport> report = check_backward(*device(), kernels, w, config, runs);
        ASSERT_TRUE(report.ok()) << text << ": " << report.status().message();
        EXPECT_TRUE(report->passed) << text << ": " << report->failure;
    }
};

TEST_P(NvidiaBackwardSums, AreRightAtRaggedSizesUnderEveryMask) {
    for (const char* mask : {"", ",causal", ",causal,topleft", ",window90:7"})
        for (const char* sizes : {"sq1,skv1", "sq130,skv1", "sq127,skv333", "sq300,skv77"})
            for (const char* dims : {"d64", "d128", "d256"}) expect_right("hq4,hkv2," + std::string(sizes) + ",bf16," + dims + mask);
}

TEST_P(NvidiaBackwardSums, AreRightInHeadDimensionsOfHalfAPanel) {
    for (const char* dims : {"d8", "d40,dv72", "d96", "d104,dv64", "d128,dv96", "d256", "d192,dv128", "d200,dv136"}) expect_right(std::string("b2,hq4,hkv2,sq150,skv190,causal,fp16,") + dims);
}

TEST_P(NvidiaBackwardSums, AreRightInEveryVariant) {
    for (const char* variant : {"softcap,d64", "alibi,d64", "softcap,alibi,sink,causal,d96", "alibi,sink,window30:10,d128", "alibi,sink,window30:10,d256", "softcap,d128"}) expect_right("b2,hq4,hkv2,sq140,skv160,bf16," + std::string(variant));
}

TEST_P(NvidiaBackwardSums, AreRightWhereBlocksDrawManyTiles) {
    expect_right("b6,hq16,hkv8,sq140,skv400,bf16,causal,d128"), expect_right("b6,hq16,hkv16,sq130,skv300,bf16,d64");
    expect_right("b6,hq16,hkv8,sq140,skv400,bf16,causal,d256"), expect_right("b6,hq16,hkv16,sq330,skv300,bf16,d256");
}

TEST_P(NvidiaBackwardSums, AreTheSameTwentyTimesInAFixedOrder) {
    if (GetParam() % 2 == 1) return;
    for (const char* text : {"hq8,hkv4,sq900,skv1200,bf16,d128,causal", "hq8,hkv8,sq700,skv1100,bf16,d64", "hq4,hkv2,sq500,skv800,fp16,d128,window200:100", "hq8,hkv4,sq500,skv800,bf16,d256,causal"}) expect_right(text, 20);
}

INSTANTIATE_TEST_SUITE_P(Dq, NvidiaBackwardSums, testing::Values(0, 1, 2, 3, 4), [](const auto& tested) { return std::to_string(tested.param); });

}  // namespace
}  // namespace tilewright
