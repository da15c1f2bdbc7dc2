// The backward call: check what was given, then launch its kernels one after another.
#include "runtime/attention_state.h"
#include "runtime/forward_parameters.h"

namespace tilewright {
namespace {

Status check_problem(const Problem& problem) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    if (problem.operation == Operation::backward) return {};
    return {StatusCode::unsupported, "backward() computes backward problems, not " + to_text(problem)};
}

Problem repeatable_if(bool deterministic, Problem problem) {
    problem.deterministic = problem.deterministic || deterministic;
    return problem;
}

}  // namespace

Result<int64_t> Attention::backward_workspace_bytes(const Problem& problem, bool deterministic) const {
    TILEWRIGHT_RETURN_IF_ERROR(check_problem(problem));
    return state_->workspace_bytes(repeatable_if(deterministic, problem), {});
}

Status Attention::backward(const Problem& problem, const BackwardTensors& t, void* stream) {
    TILEWRIGHT_RETURN_IF_ERROR(check_problem(problem));
    const Problem p = repeatable_if(t.deterministic, problem);
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
    if (p.batch * p.seq_q > 0 && !f.lse) return invalid_argument("lse is null; the backward needs that of the forward");
    CallTraits traits;
    traits.aligned = aligned;
    TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation ready, state_->ready(p, traits));
    TILEWRIGHT_RETURN_IF_ERROR(check_workspace(ready.plan, t.workspace, t.workspace_bytes));

    OperationParameters all = parameters_of(Operation::backward);
    auto& parameters = std::get<kernel::BackwardParameters>(all);
    parameters.forward = forward_parameters(p, f, tensors);
    parameters.out_gradient = t.out_gradient.data, parameters.lse_gradient = t.lse_gradient;
    parameters.query_gradient = t.query_gradient.data, parameters.key_gradient = t.key_gradient.data, parameters.value_gradient = t.value_gradient.data;
    parameters.sink_gradient = t.sink_gradient;
    parameters.out_gradient_strides = strides_of(gradients[0]), parameters.query_gradient_strides = strides_of(gradients[1]);
    parameters.key_gradient_strides = strides_of(gradients[2]), parameters.value_gradient_strides = strides_of(gradients[3]);
    use_workspace(p, ready.plan, t.workspace, all);
    return launch(*state_->device, ready.kernels, all, stream);
}

}  // namespace tilewright
