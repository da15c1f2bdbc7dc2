// Runs emulated backward kernels on a workload and compares.
#include "backward_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/launch.h"
#include "verify/check_backward.h"
#include "verify/device_workload.h"

namespace tilewright::emulated {
namespace {

KernelKind kind_of(Pass pass) {
    switch (pass) {
        case Pass::prologue: return KernelKind::attention_backward_prologue;
        case Pass::keys: return KernelKind::attention_backward_keys;
        case Pass::keys_alone: return KernelKind::attention_backward_keys_alone;
        case Pass::values_alone: return KernelKind::attention_backward_values_alone;
        case Pass::queries: return KernelKind::attention_backward_queries;
        case Pass::epilogue: return KernelKind::attention_backward_epilogue;
        case Pass::sink: return KernelKind::attention_backward_sink;
    }
    return KernelKind::attention_backward_prologue;
}

}  // namespace

Workload make_workload(const EmulatedBackward& kernels, const std::string& sizes) {
    Result<Problem> problem = parse_problem("backward:" + kernels.problem + "," + sizes);
    EXPECT_TRUE(problem.ok()) << sizes;
    WorkloadOptions options;
    options.layout = kernels.aligned ? Layout::gapped : Layout::unaligned, options.softcap = 2;
    return make_backward_workload(*problem, options);
}

namespace {

void run(const EmulatedBackward& kernels, Workload& w, std::vector<Pass> passes, int order) {
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
    const Problem& p = w.problem;
    auto queries = static_cast<size_t>(p.batch * p.heads_q * kernel::backward_padded(p.seq_q));
    std::vector<float> sums(kernels.dq ? queries * static_cast<size_t>(kernel::backward_sum_columns(static_cast<int>(p.head_dim))) : 0, NAN);
    std::vector<unsigned> turns(kernels.dq ? queries / static_cast<size_t>(kernel::backward_least_block_q) : 0, 77u);
    for (Pass pass : passes) {
        kernel::BackwardParameters parameters = std::get<kernel::BackwardParameters>(bound->parameters);
        Config config;
        config.block_q = kernels.block_q, config.block_kv = kernels.block_kv;
        if (kernels.swaps && pass == Pass::queries) std::swap(config.block_q, config.block_kv);
        fill_work_order({kind_of(pass), w.problem, config}, parameters);
        unsigned dealt = 0;
        parameters.forward.tiles_dealt = &dealt, parameters.query_sums = sums.data(), parameters.turns = turns.data();
        EXPECT_EQ(kernels.run(pass, parameters, order), "") << to_text(w.problem) << ", order " << order;
        EXPECT_EQ(dealt, 0u);
    }
    auto touched = on_host->download(w);
    ASSERT_TRUE(touched.ok()) << touched.status().message();
    EXPECT_EQ(*touched, "");
}

}  // namespace

void expect_right_gradients(const EmulatedBackward& kernels, Workload& w, std::vector<Pass> passes, int order) {
    run(kernels, w, std::move(passes), order);
    CheckReport report = compare_gradients(w);
    EXPECT_TRUE(report.passed) << to_text(w.problem) << ", order " << order << ": " << report.failure;
}

}  // namespace tilewright::emulated
