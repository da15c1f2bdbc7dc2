// Decode calls: check what was given, plan the division of the keys, launch.
#include <algorithm>

#include "backends/launch.h"
#include "runtime/attention_state.h"
#include "runtime/forward_parameters.h"

namespace tilewright {
namespace {

Status check_problem(const Problem& problem) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    if (problem.operation == Operation::decode) return {};
    return {StatusCode::unsupported, "decode() computes decode problems, not " + to_text(problem)};
}

Status check_tables(const Problem& p, const DecodeTensors& t) {
    TILEWRIGHT_RETURN_IF_ERROR(check_pages(p, t.block_table, t.page_size, t.table_stride, t.pages));
    if (t.block_table && !t.lengths && t.table_stride * t.page_size < p.seq_kv)
        return invalid_argument("table_stride is " + std::to_string(t.table_stride) + "; a sequence of " + std::to_string(p.seq_kv) + " keys has more pages of " +
                                std::to_string(t.page_size) + " keys");
    return {};
}

// Where the host can read them.
Status check_lengths(const Problem& p, const DecodeTensors& t) {
    for (int64_t i = 0; t.lengths && i < p.batch; ++i) {
        int64_t most = t.block_table ? std::min(p.seq_kv, t.table_stride * t.page_size) : p.seq_kv;
        if (t.lengths[i] < 0 || t.lengths[i] > most)
            return invalid_argument("sequence " + std::to_string(i) + " has " + std::to_string(t.lengths[i]) + " keys; it must be from 0 to " + std::to_string(most));
    }
    return {};
}

}  // namespace

Result<int64_t> Attention::decode_workspace_bytes(const Problem& problem, int splits) const {
    TILEWRIGHT_RETURN_IF_ERROR(check_problem(problem));
    CallTraits traits;
    traits.splits = splits;
    return state_->workspace_bytes(problem, traits);
}

Status Attention::decode(const Problem& problem, const DecodeTensors& t, void* stream) {
    TILEWRIGHT_RETURN_IF_ERROR(check_problem(problem));
    const Problem& p = problem;
    const DeviceInfo& device = state_->device->info();
    TILEWRIGHT_RETURN_IF_ERROR(check_tables(p, t));
    // Pages, and how many of them there are, are known to the table alone.
    int64_t kv_rows = t.block_table ? std::min(t.page_size, p.seq_kv) : p.seq_kv;
    const Extent tensors[] = {extent("query", t.query, p.batch, p.heads_q, p.seq_q, p.head_dim), extent("key", t.key, p.batch, p.heads_kv, kv_rows, p.head_dim),
                              extent("value", t.value, p.batch, p.heads_kv, kv_rows, p.head_dim_v), extent("out", t.out, p.batch, p.heads_q, p.seq_q, p.head_dim_v)};
    float scale = t.scale.value_or(default_scale(p));
    CallTraits traits;
    traits.rescaled = !(scale > 0), traits.paged = t.block_table != nullptr, traits.splits = t.splits;
    for (const Extent& tensor : tensors) {
        TILEWRIGHT_RETURN_IF_ERROR(check_extent(tensor));
        traits.aligned = traits.aligned && is_aligned(tensor, static_cast<int64_t>(size_of(p.dtype)));
    }
    if (t.block_table) traits.aligned = traits.aligned && t.key.batch_stride >= 0 && t.value.batch_stride >= 0;
    TILEWRIGHT_RETURN_IF_ERROR(check_variants(p, t));
    if (p.batch * p.seq_q == 0) return {};
    if (device.arch.family == Family::cpu) TILEWRIGHT_RETURN_IF_ERROR(check_lengths(p, t));
    TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation ready, state_->ready(p, traits));
    TILEWRIGHT_RETURN_IF_ERROR(check_workspace(ready.plan, t.workspace, t.workspace_bytes));

    OperationParameters all = parameters_of(p);
    auto& parameters = std::get<kernel::DecodeParameters>(all);
    parameters.forward = forward_parameters(p, t, tensors);
    parameters.lengths = t.lengths, parameters.block_table = t.block_table, parameters.table_stride = t.table_stride, parameters.pages = static_cast<int>(t.pages);
    parameters.page_shift = page_shift(t.page_size);
    parameters.top_left = p.alignment == Alignment::top_left;
    use_workspace(ready.plan, t.workspace, all);
    return launch(*state_->device, ready.kernels, all, stream);
}

}  // namespace tilewright
