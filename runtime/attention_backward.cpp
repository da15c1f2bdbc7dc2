// The backward call: check what was given, then launch its kernels one after another.
#include <algorithm>

#include "runtime/attention_state.h"
#include "runtime/forward_parameters.h"

namespace tilewright {

Result<int64_t> Attention::backward_workspace_bytes(const Problem& problem) const {
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    int64_t most = 0;
    for (bool aligned : {false, true}) most = std::max(most, backward_workspace(problem, state_->backward_config(problem, aligned)).bytes());
    return most;
}

Result<std::vector<Kernel*>> Attention::State::backward_kernels(const Problem& problem, const Config& config, bool aligned) {
    if (problem.bias) return Status(StatusCode::unsupported, "the backward of a bias is not supported: " + to_text(problem));
    std::vector<Kernel*> all;
    for (const BackwardLaunch& launch : backward_plan(problem, config, device->info().arch, aligned)) {
        TILEWRIGHT_ASSIGN_OR_RETURN(Kernel * kernel, kernels.get({launch.kind, problem, launch.config, aligned, false}));
        all.push_back(kernel);
    }
    return all;
}

Status Attention::backward(const Problem& problem, const BackwardTensors& t, void* stream) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    if (problem.operation != Operation::backward) return {StatusCode::unsupported, "backward() computes backward problems, not " + to_text(problem)};
    const Problem& p = problem;
    const ForwardTensors& f = t.forward;
    const Extent tensors[] = {
        extent("query", f.query, p.batch, p.heads_q, p.seq_q, p.head_dim), extent("key", f.key, p.batch, p.heads_kv, p.seq_kv, p.head_dim),
        extent("value", f.value, p.batch, p.heads_kv, p.seq_kv, p.head_dim_v), extent("out", f.out, p.batch, p.heads_q, p.seq_q, p.head_dim_v)};
    const Extent gradients[] = {extent("out_gradient", t.out_gradient, p.batch, p.heads_q, p.seq_q, p.head_dim_v),
                                extent("query_gradient", t.query_gradient, p.batch, p.heads_q, p.seq_q, p.head_dim),
                                extent("key_gradient", t.key_gradient, p.batch, p.heads_kv, p.seq_kv, p.head_dim),
                                extent("value_gradient", t.value_gradient, p.batch, p.heads_kv, p.seq_kv, p.head_dim_v)};
    bool aligned = true;
    for (const auto* of : {&tensors, &gradients})
        for (const Extent& tensor : *of) {
            TILEWRIGHT_RETURN_IF_ERROR(check_extent(tensor));
            aligned = aligned && is_aligned(tensor, static_cast<int64_t>(size_of(p.dtype)));
        }
    TILEWRIGHT_RETURN_IF_ERROR(check_variants(p, f));
    TILEWRIGHT_RETURN_IF_ERROR(check_pointer("sink_gradient", t.sink_gradient, p.sink));
    Config config = state_->backward_config(p, aligned);
    BackwardWorkspace workspace = backward_workspace(p, config);
    if (workspace.bytes() > 0) {
        if (!f.lse) return invalid_argument("lse is null; the backward needs that of the forward");
        if (!t.workspace) return invalid_argument("workspace is null; it must hold " + std::to_string(workspace.bytes()) + " bytes");
        if (reinterpret_cast<uintptr_t>(t.workspace) % 16) return invalid_argument("workspace is not 16-byte aligned");
    }

    TILEWRIGHT_ASSIGN_OR_RETURN(std::vector<Kernel*> kernels, state_->backward_kernels(p, config, aligned));
    kernel::BackwardParameters parameters{};
    parameters.forward = forward_parameters(p, f, tensors);
    parameters.out_gradient = t.out_gradient.data, parameters.lse_gradient = t.lse_gradient;
    parameters.query_gradient = t.query_gradient.data, parameters.key_gradient = t.key_gradient.data, parameters.value_gradient = t.value_gradient.data;
    parameters.sink_gradient = t.sink_gradient;
    parameters.out_gradient_strides = strides_of(gradients[0]), parameters.query_gradient_strides = strides_of(gradients[1]);
    parameters.key_gradient_strides = strides_of(gradients[2]), parameters.value_gradient_strides = strides_of(gradients[3]);
    use_workspace(p, workspace, t.workspace, parameters);
    for (Kernel* kernel : kernels) TILEWRIGHT_RETURN_IF_ERROR(state_->device->launch(*kernel, parameters, stream));
    return {};
}

}  // namespace tilewright
