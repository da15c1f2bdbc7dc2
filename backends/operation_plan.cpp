// Kernels, workspace and launches of each operation.
#include "backends/operation_plan.h"

#include "backends/launch.h"

namespace tilewright {
namespace {

int64_t scores_bytes(const Problem& p) { return p.batch * p.heads_q * p.seq_q * p.seq_kv * static_cast<int64_t>(sizeof(float)); }

OperationPlan plan_forward(const Problem& problem, const Config& config, const CallTraits& traits) {
    OperationPlan plan;
    Config used = config;
    // The baseline works on one query head at a time, one product after another.
    if (traits.materialized) used.packs_heads = used.overlapped = used.turns = 0;
    KernelKind kind = traits.materialized ? KernelKind::attention_materialized : KernelKind::attention_forward;
    plan.kernels.push_back({kind, problem, used, traits.aligned, traits.rescaled});
    if (traits.materialized) plan.workspace_bytes = scores_bytes(problem);
    return plan;
}

Result<OperationPlan> plan_backward(const Problem& problem, const Config& config, const Arch& arch, const CallTraits& traits) {
    if (problem.deterministic && config.dq == 1)
        return Status(StatusCode::unsupported, "dq is 1: sums in memory are in any order, and a repeatable result is asked for; it must be 0 or 2");
    OperationPlan plan;
    for (const BackwardLaunch& launch : backward_plan(problem, config, arch, traits.aligned))
        plan.kernels.push_back({launch.kind, problem, launch.config, traits.aligned});
    plan.backward = problem.packed ? packed_backward_workspace(problem, traits.query_rows) : backward_workspace(problem, config);
    plan.workspace_bytes = plan.backward.bytes();
    return plan;
}

Result<OperationPlan> plan_decoding(const Problem& problem, const Config& config, const Arch& arch, const CallTraits& traits) {
    OperationPlan plan;
    plan.kernels.push_back({KernelKind::attention_decode, problem, config, traits.aligned, traits.rescaled, traits.paged});
    // One query at the last key sees all: that needs no mask.
    if (problem.causal() && problem.seq_q == 1 && problem.alignment == Alignment::bottom_right) plan.kernels[0].problem.window_right = -1;
    TILEWRIGHT_ASSIGN_OR_RETURN(plan.decode, plan_decode(plan.kernels[0], units_for(plan.kernels[0], arch), traits.splits));
    plan.kernels[0].config.units = 0;  // one kernel serves all
    plan.workspace_bytes = plan.decode.workspace_bytes();
    plan.workspace_zeroed = true;
    return plan;
}

}  // namespace

CallTraits dense_traits(const Problem& problem) {
    CallTraits traits;
    traits.aligned = problem.head_dim % 8 == 0 && problem.head_dim_v % 8 == 0;
    traits.paged = problem.page_size > 0;
    return traits;
}

Result<OperationPlan> plan_operation(const Problem& problem, const Config& config, const Arch& arch, const CallTraits& traits) {
    switch (problem.operation) {
        case Operation::forward: return plan_forward(problem, config, traits);
        case Operation::backward: return plan_backward(problem, config, arch, traits);
        case Operation::decode: return plan_decoding(problem, config, arch, traits);
    }
    return Status(StatusCode::internal, "no such operation");
}

OperationParameters parameters_of(const Problem& problem) {
    if (problem.operation == Operation::backward) return kernel::BackwardParameters{};
    if (problem.operation == Operation::decode) return kernel::DecodeParameters{};
    if (problem.packed) return kernel::PackedParameters{};
    return kernel::ForwardParameters{};
}

const kernel::ForwardParameters& forward_part(const OperationParameters& parameters) {
    struct Part {
        const kernel::ForwardParameters& operator()(const kernel::ForwardParameters& p) const { return p; }
        const kernel::ForwardParameters& operator()(const kernel::BackwardParameters& p) const { return p.forward; }
        const kernel::ForwardParameters& operator()(const kernel::DecodeParameters& p) const { return p.forward; }
        const kernel::ForwardParameters& operator()(const kernel::PackedParameters& p) const { return p.forward; }
    };
    return std::visit(Part(), parameters);
}
kernel::ForwardParameters& forward_part(OperationParameters& parameters) {
    return const_cast<kernel::ForwardParameters&>(forward_part(std::as_const(parameters)));
}

void use_workspace(const OperationPlan& plan, void* workspace, OperationParameters& parameters) {
    if (auto* forward = std::get_if<kernel::ForwardParameters>(&parameters)) forward->scores = static_cast<float*>(workspace);
    if (auto* backward = std::get_if<kernel::BackwardParameters>(&parameters)) use_workspace(plan.backward, workspace, *backward);
    if (auto* decode = std::get_if<kernel::DecodeParameters>(&parameters)) use_plan(plan.decode, workspace, *decode);
}

Status launch(Device& device, std::span<Kernel* const> kernels, const OperationParameters& parameters, void* stream) {
    for (Kernel* kernel : kernels)
        TILEWRIGHT_RETURN_IF_ERROR(std::visit([&](const auto& p) { return device.launch(*kernel, p, stream); }, parameters));
    return {};
}

}  // namespace tilewright
