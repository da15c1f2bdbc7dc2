// The backward by AMD's arch headers, on fibers, against the float64 reference: shapes, masks, variants and values that are hard.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>

#include "backends/launch.h"
#include "backward.h"
#include "verify/check_backward.h"
#include "verify/device_workload.h"

namespace tilewright::emulated {
namespace {

std::vector<EmulatedBackward> all_kernels() {
    std::vector<EmulatedBackward> all;
    for (auto* list : {cdna_backward, rdna3_backward, rdna4_backward})
        for (EmulatedBackward& k : list()) all.push_back(std::move(k));
    return all;
}

KernelKind kind_of(Pass pass) {
    switch (pass) {
        case Pass::prologue: return KernelKind::attention_backward_prologue;
        case Pass::keys: return KernelKind::attention_backward_keys;
        case Pass::keys_alone: return KernelKind::attention_backward_keys_alone;
        case Pass::values_alone: return KernelKind::attention_backward_values_alone;
        case Pass::queries: return KernelKind::attention_backward_queries;
        case Pass::sink: return KernelKind::attention_backward_sink;
    }
    return KernelKind::attention_backward_prologue;
}

class AmdBackward : public testing::TestWithParam<EmulatedBackward> {
protected:
    static Workload workload(const std::string& sizes) {
        Result<Problem> problem = parse_problem("backward:" + GetParam().problem + "," + sizes);
        EXPECT_TRUE(problem.ok()) << sizes;
        WorkloadOptions options;
        options.layout = GetParam().aligned ? Layout::gapped : Layout::unaligned, options.softcap = 2;
        return make_backward_workload(*problem, options);
    }
    static void run(Workload& w, std::vector<Pass> passes, int order = 0) {
        static std::unique_ptr<Device> host = *open_device("cpu:0");
        auto on_host = DeviceWorkload::upload(*host, w);
        ASSERT_TRUE(on_host.ok()) << on_host.status().message();
        ASSERT_TRUE(on_host->reset_outputs(w).ok());
        auto plan = plan_operation(w.problem, {}, host->info().arch, traits_of(w));
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        auto bound = on_host->bind(*plan);
        ASSERT_TRUE(bound.ok()) << bound.status().message();
        passes.insert(passes.begin(), Pass::prologue);
        if (w.problem.sink) passes.push_back(Pass::sink);
        for (Pass pass : passes) {
            kernel::BackwardParameters parameters = std::get<kernel::BackwardParameters>(bound->parameters);
            Config config;
            config.block_q = GetParam().block_q, config.block_kv = GetParam().block_kv;
            fill_work_order({kind_of(pass), w.problem, config}, parameters);
            GetParam().run(pass, parameters, order);
        }
        auto touched = on_host->download(w);
        ASSERT_TRUE(touched.ok()) << touched.status().message();
        EXPECT_EQ(*touched, "");
    }
    static void expect_right(Workload& w, std::vector<Pass> passes = {Pass::keys, Pass::queries}, int order = 0) {
        run(w, std::move(passes), order);
        CheckReport report = compare_gradients(w);
        EXPECT_TRUE(report.passed) << to_text(w.problem) << ", order " << order << ": " << report.failure;
    }
    // Of several heads: the rule compares the largest errors, and that of one sink's gradient may be small by chance.
    static void expect_right(const std::string& sizes, int order = 0) {
        Workload w = workload(sizes);
        expect_right(w, {Pass::keys, Pass::queries}, order);
    }
};
INSTANTIATE_TEST_SUITE_P(All, AmdBackward, testing::ValuesIn(all_kernels()), [](const testing::TestParamInfo<EmulatedBackward>& test) {
    std::string name = test.param.name;
    for (char& c : name)
        if (!std::isalnum((unsigned char)c)) c = '_';
    return name;
});

TEST_P(AmdBackward, IsRightOnRaggedGroupedHeads) { expect_right("b2,hq8,hkv2,sq21,skv75"); }
// Several tiles of rows and of columns, several waves: a missing barrier shows in one of the orders.
TEST_P(AmdBackward, IsRightInWhateverOrderWavesRun) {
    for (int order : {0, 1, 2}) expect_right("hq4,hkv2,sq90,skv70", order);
}
TEST_P(AmdBackward, IsRightWhereThereIsLittle) {
    for (const char* sizes : {"hq4,hkv2,sq1,skv1", "hq4,hkv2,sq2,skv0", "hq4,hkv2,sq0,skv2", "b2,hq8,hkv2,sq1,skv70", "hq8,hkv2,sq70,skv1"}) expect_right(sizes);
}
TEST_P(AmdBackward, GivesTheSameBitsInTwoPassesOverKeys) {
    Workload together = workload("hq8,hkv2,sq50,skv66"), apart = together;
    expect_right(together);
    expect_right(apart, {Pass::keys_alone, Pass::values_alone, Pass::queries});
    for (size_t i = 0; i < together.written().size(); ++i) EXPECT_EQ(together.elements(*together.written()[i]), apart.elements(*apart.written()[i]));
}
TEST_P(AmdBackward, LetsNanAndInfinityReachWhatTheyMeetAndNothingElse) {
    for (int which = 0; which < 4; ++which)
        for (double special : {double(NAN), double(INFINITY)}) {
            Workload w = workload("hq8,hkv4,sq80,skv80");
            // With ALiBi near the first key: a probability that rounds to zero makes NaN of infinity.
            w.set(which == 0 ? w.query : which == 1 ? w.key : which == 2 ? w.value : w.out_gradient, 0, 0, w.problem.alibi ? 3 : 40, 3, special);
            forward_results(w);
            expect_right(w);
        }
}

}  // namespace
}  // namespace tilewright::emulated
