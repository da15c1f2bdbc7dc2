// The backward call: check what was given, then launch its kernels one after another.
#include "runtime/attention_state.h"
#include "runtime/forward_parameters.h"
#include "runtime/packed.h"

namespace tilewright {
namespace {

Status check_problem(const Problem& problem) {
    if (problem.operation != Operation::backward) return {StatusCode::unsupported, "backward() computes backward problems, not " + to_text(problem)};
    return validate(problem);
}
Status check_unpacked(const Problem& problem) {
    TILEWRIGHT_RETURN_IF_ERROR(check_problem(problem));
    return problem.packed ? Status(StatusCode::unsupported, "backward_packed() computes packed sequences: " + to_text(problem)) : Status();
}

// Of what is differentiated and of the gradients, checked.
struct Extents {
    Extent tensors[4], gradients[4];
    bool aligned = true;
};
Result<Extents> check_tensors(const Problem& p, const BackwardTensors& t) {
    const ForwardTensors& f = t.forward;
    Extents e{{extent("query", f.query, p.batch, p.heads_q, p.seq_q, p.head_dim), extent("key", f.key, p.batch, p.heads_kv, p.seq_kv, p.head_dim),
               extent("value", f.value, p.batch, p.heads_kv, p.seq_kv, p.head_dim_v), extent("out", f.out, p.batch, p.heads_q, p.seq_q, p.head_dim_v)},
              {extent("out_gradient", t.out_gradient, p.batch, p.heads_q, p.seq_q, p.head_dim_v), extent("query_gradient", t.query_gradient, p.batch, p.heads_q, p.seq_q, p.head_dim),
               extent("key_gradient", t.key_gradient, p.batch, p.heads_kv, p.seq_kv, p.head_dim), extent("value_gradient", t.value_gradient, p.batch, p.heads_kv, p.seq_kv, p.head_dim_v)}};
    for (const auto* of : {&e.tensors, &e.gradients})
        for (const Extent& tensor : *of) {
            TILEWRIGHT_RETURN_IF_ERROR(check_extent(tensor));
            e.aligned = e.aligned && is_aligned(tensor, static_cast<int64_t>(size_of(p.dtype)));
        }
    TILEWRIGHT_RETURN_IF_ERROR(check_variants(p, f));
    TILEWRIGHT_RETURN_IF_ERROR(check_pointer("sink_gradient", t.sink_gradient, p.sink));
    if (!p.bias) TILEWRIGHT_RETURN_IF_ERROR(check_pointer("bias_gradient", t.bias_gradient.data, false));
    if (p.batch * p.seq_q > 0 && !f.lse) return invalid_argument("lse is null; the backward needs that of the forward");
    return e;
}

kernel::BackwardParameters gradient_parameters(const Problem& p, const BackwardTensors& t, const Extents& e) {
    kernel::BackwardParameters parameters{};
    parameters.forward = forward_parameters(p, t.forward, e.tensors);
    parameters.out_gradient = t.out_gradient.data, parameters.lse_gradient = t.lse_gradient;
    parameters.query_gradient = t.query_gradient.data, parameters.key_gradient = t.key_gradient.data, parameters.value_gradient = t.value_gradient.data;
    parameters.sink_gradient = t.sink_gradient;
    parameters.bias_gradient = t.bias_gradient.data, parameters.bias_gradient_column_stride = t.bias_gradient.column_stride;
    parameters.bias_gradient_strides = {t.bias_gradient.batch_stride, t.bias_gradient.head_stride, t.bias_gradient.row_stride};
    parameters.out_gradient_strides = strides_of(e.gradients[0]), parameters.query_gradient_strides = strides_of(e.gradients[1]);
    parameters.key_gradient_strides = strides_of(e.gradients[2]), parameters.value_gradient_strides = strides_of(e.gradients[3]);
    return parameters;
}

Problem repeatable_if(bool deterministic, Problem problem) {
    problem.deterministic = problem.deterministic || deterministic;
    return problem;
}

}  // namespace

Result<int64_t> Attention::backward_workspace_bytes(const Problem& problem, bool deterministic) const {
    TILEWRIGHT_RETURN_IF_ERROR(check_unpacked(problem));
    return state_->workspace_bytes(repeatable_if(deterministic, problem), {});
}

Status Attention::backward(const Problem& problem, const BackwardTensors& t, void* stream) {
    TILEWRIGHT_RETURN_IF_ERROR(check_unpacked(problem));
    TILEWRIGHT_ASSIGN_OR_RETURN(const Extents extents, check_tensors(problem, t));
    CallTraits traits;
    traits.aligned = extents.aligned;
    TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation ready, state_->ready(repeatable_if(t.deterministic, problem), traits));
    TILEWRIGHT_RETURN_IF_ERROR(check_workspace(ready.plan, t.workspace, t.workspace_bytes));
    OperationParameters all = gradient_parameters(problem, t, extents);
    use_workspace(ready.plan, t.workspace, all);
    return launch(*state_->device, ready.kernels, all, stream);
}

Result<int64_t> Attention::backward_packed_workspace_bytes(const Problem& given, int64_t query_rows) const {
    const Problem problem = as_packed(given);
    TILEWRIGHT_RETURN_IF_ERROR(check_problem(problem));
    TILEWRIGHT_RETURN_IF_ERROR(validate(all_as_one(problem, query_rows, 0)));
    return packed_backward_workspace(problem, query_rows).bytes();
}

Status Attention::backward_packed(const Problem& given, const BackwardTensors& t, const PackedSequences& s, void* stream) {
    const Problem problem = as_packed(given);
    TILEWRIGHT_RETURN_IF_ERROR(check_problem(problem));
    TILEWRIGHT_ASSIGN_OR_RETURN(const Problem flat, check_packed(problem, s));
    TILEWRIGHT_ASSIGN_OR_RETURN(Extents extents, check_tensors(flat, t));
    for (auto* of : {&extents.tensors, &extents.gradients})
        for (Extent& tensor : *of) tensor.batch_stride = tensor.row_stride;
    TILEWRIGHT_RETURN_IF_ERROR(check_starts(problem, s, state_->device->info().arch));
    CallTraits traits;
    traits.aligned = extents.aligned, traits.query_rows = s.query_rows;
    TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation ready, state_->ready(repeatable_if(t.deterministic, problem), traits));
    TILEWRIGHT_RETURN_IF_ERROR(check_workspace(ready.plan, t.workspace, t.workspace_bytes));
    kernel::BackwardParameters parameters = gradient_parameters(flat, t, extents);
    set_sequences(parameters, problem, s);
    OperationParameters all = parameters;
    use_workspace(ready.plan, t.workspace, all);
    return launch(*state_->device, ready.kernels, all, stream);
}

}  // namespace tilewright
