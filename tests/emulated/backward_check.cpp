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
        case Pass::bias: return KernelKind::attention_backward_bias;
        case Pass::epilogue: return KernelKind::attention_backward_epilogue;
        case Pass::sink: return KernelKind::attention_backward_sink;
    }
    return KernelKind::attention_backward_prologue;
}

}  // namespace

Workload make_workload(const EmulatedBackward& kernels, const std::string& sizes, std::array<bool, 4> broadcast_bias) {
    Result<Problem> problem = parse_problem("backward:" + kernels.problem + "," + sizes);
    EXPECT_TRUE(problem.ok()) << sizes;
    WorkloadOptions options;
    options.layout = kernels.aligned ? Layout::gapped : Layout::unaligned, options.softcap = 2, options.broadcast_bias = broadcast_bias;
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
    const bool persistent = kernels.persistent && w.problem.seq_kv > 0;
    if (kernels.persistent && !persistent) passes.push_back(Pass::epilogue);
    if (w.problem.bias) passes.push_back(Pass::bias);
    if (w.problem.sink) passes.push_back(Pass::sink);
    const Problem& p = w.problem;
    auto queries = static_cast<size_t>(p.batch * p.heads_q * kernel::backward_padded(p.seq_q));
    std::vector<float> sums(kernels.dq ? queries * static_cast<size_t>(kernel::backward_sum_columns(static_cast<int>(p.head_dim))) : 0, NAN);
    std::vector<unsigned> turns(kernels.dq ? queries / static_cast<size_t>(kernel::backward_least_block_q) * kernel::backward_most_turns : 0, 77u);
    std::vector<unsigned> counts(static_cast<size_t>(kernel::backward_counts(p.batch * p.heads_kv)), 77u);
    struct alignas(16) Parts {
        float numbers[4];
    };
    std::vector<Parts> parts(kernels.dq ? 2 * queries : 0, {{NAN, NAN, NAN, NAN}});
    for (Pass pass : passes) {
        kernel::BackwardParameters parameters = std::get<kernel::BackwardParameters>(bound->parameters);
        Config config;
        config.block_q = kernels.block_q, config.block_kv = kernels.block_kv;
        if (kernels.swaps && (pass == Pass::queries || pass == Pass::bias)) std::swap(config.block_q, config.block_kv);
        fill_work_order({kind_of(pass), w.problem, config}, parameters);
        if (persistent) parameters.prepared_heads = 1;
        if (persistent && pass == Pass::prologue) parameters.forward.tiles /= static_cast<int>(p.batch * p.heads_kv);
        unsigned dealt = 0;
        parameters.forward.tiles_dealt = &dealt, parameters.query_sums = sums.data(), parameters.log_sum_parts = parts.data(), parameters.delta_parts = parts.data() + parts.size() / 2, parameters.turns = turns.data(), parameters.counts = counts.data();
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

void expect_right_sums_of_bias(const EmulatedBackward& kernels) {
    for (unsigned pattern : {1u, 2u, 3u, 4u, 8u, 7u, 11u, 15u}) {
        std::array<bool, 4> broadcast{};
        for (unsigned i = 0; i < 4; ++i) broadcast[i] = pattern >> i & 1;
        Workload w = make_workload(kernels, "b2,hq4,hkv2,sq50,skv70", broadcast);
        expect_right_gradients(kernels, w, {Pass::keys, Pass::queries}, static_cast<int>(pattern % 4));
    }
}

void expect_hidden_by_bias_cannot_matter(const EmulatedBackward& kernels) {
    Workload w = make_workload(kernels, "hq4,hkv2,sq50,skv60");
    for (int64_t h = 0; h < 4; ++h) {
        for (int64_t i = 0; i < 50; ++i) w.set(w.bias, 0, h, i, 3, -INFINITY), w.set(w.bias, 0, h, i, 40, i < 45 ? -INFINITY : 0);
        for (int64_t j = 0; j < 60; ++j) w.set(w.bias, 0, h, 44, j, -INFINITY);
    }
    w.set(w.key, 0, 1, 3, 2, NAN), w.set(w.value, 0, 1, 3, 1, INFINITY), w.set(w.query, 0, 2, 44, 0, NAN), w.set(w.out_gradient, 0, 2, 44, 4, INFINITY);
    forward_results(w);
    expect_right_gradients(kernels, w, {Pass::keys, Pass::queries}, 3);
    w.set(w.value, 0, 1, 40, 0, NAN);  // which some see
    forward_results(w);
    expect_right_gradients(kernels, w, {Pass::keys, Pass::queries}, 0);
}

std::vector<EmulatedBackward> with_bias(std::vector<EmulatedBackward> kernels) {
    std::erase_if(kernels, [](const EmulatedBackward& one) { return one.problem.find(",bias") == std::string::npos; });
    return kernels;
}

}  // namespace tilewright::emulated
