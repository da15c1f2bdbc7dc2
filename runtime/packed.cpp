// The forward of packed sequences: check what was given, treat all rows as one batch, launch.
#include "runtime/packed.h"

#include <string>

#include "runtime/attention_state.h"
#include "runtime/forward_parameters.h"

namespace tilewright {
namespace {

constexpr int64_t countable = int64_t{1} << 31;

int64_t start_at(const void* starts, IndexType type, int64_t i) {
    return type == IndexType::int64 ? static_cast<const int64_t*>(starts)[i] : int64_t{static_cast<const int32_t*>(starts)[i]};
}

Status check_starts(const char* name, const void* starts, IndexType type, int64_t sequences, int64_t rows, int64_t longest) {
    for (int64_t i = 0; i <= sequences; ++i) {
        int64_t start = start_at(starts, type, i), least = i == 0 ? 0 : start_at(starts, type, i - 1);
        std::string what = i < sequences ? "sequence " + std::to_string(i) + " begins" : "the last sequence, " + std::to_string(i - 1) + ", ends";
        if (start < least || start > rows)
            return invalid_argument(std::string(name) + ": " + what + " at row " + std::to_string(start) + "; it must be from " + std::to_string(least) + " to " +
                                    std::to_string(rows));
        if (i > 0 && start - least > longest)
            return invalid_argument(std::string(name) + ": sequence " + std::to_string(i - 1) + " has " + std::to_string(start - least) +
                                    " rows; the problem's longest has " + std::to_string(longest));
    }
    return {};
}

Status check_sequences(const Problem& p, const PackedSequences& s) {
    if (s.type != IndexType::int32 && s.type != IndexType::int64)
        return invalid_argument("the type of the starts is " + std::to_string(static_cast<int>(s.type)) + "; it must be 1 (int32) or 2 (int64)");
    if (p.batch > 0 && !s.query_starts) return invalid_argument("query_starts is null, but there are " + std::to_string(p.batch) + " sequences");
    if (p.batch > 0 && !s.key_starts) return invalid_argument("key_starts is null, but there are " + std::to_string(p.batch) + " sequences");
    // Tiles of the smallest block, and rows in which the heads of a group alternate.
    if (int64_t tiles = p.heads_q * (s.query_rows / 16 + p.batch); tiles >= countable)
        return invalid_argument("heads_q * (query_rows / 16 + batch) is " + std::to_string(tiles) + "; it must be below " + std::to_string(countable));
    // The backward's, of keys and of whole blocks of queries.
    if (int64_t tiles = p.heads_kv * (s.key_rows / 16 + p.batch), padded = kernel::backward_padded_packed(s.query_rows, p.batch);
        p.operation == Operation::backward && (tiles >= countable || padded >= countable))
        return invalid_argument("heads_kv * (key_rows / 16 + batch) is " + std::to_string(tiles) + " and (query_rows / 128 + batch) * 128 is " + std::to_string(padded) +
                                "; both must be below " + std::to_string(countable));
    if (int64_t rows = s.query_rows * (p.heads_q / p.heads_kv); rows >= countable)
        return invalid_argument("query_rows * heads_q / heads_kv is " + std::to_string(rows) + "; it must be below " + std::to_string(countable));
    return {};
}

}  // namespace

Problem as_packed(Problem problem) {
    problem.packed = true;
    return problem;
}

Problem all_as_one(const Problem& problem, int64_t query_rows, int64_t key_rows) {
    Problem flat = problem;
    flat.batch = 1, flat.seq_q = query_rows, flat.seq_kv = key_rows;
    flat.shortest_q = flat.shortest_kv = -1, flat.length_seed = 0;
    return flat;
}

Result<Problem> check_packed(const Problem& problem, const PackedSequences& s) {
    if (problem.bias) return Status(StatusCode::unsupported, "packed sequences take no bias: " + to_text(problem));
    Problem flat = all_as_one(problem, s.query_rows, s.key_rows);
    TILEWRIGHT_RETURN_IF_ERROR(validate(flat));
    TILEWRIGHT_RETURN_IF_ERROR(check_sequences(problem, s));
    return flat;
}

Status check_starts(const Problem& problem, const PackedSequences& s, const Arch& arch) {
    if (arch.family != Family::cpu || problem.batch == 0) return {};
    TILEWRIGHT_RETURN_IF_ERROR(check_starts("query_starts", s.query_starts, s.type, problem.batch, s.query_rows, problem.seq_q));
    return check_starts("key_starts", s.key_starts, s.type, problem.batch, s.key_rows, problem.seq_kv);
}

Status Attention::forward_packed(const Problem& given, const ForwardTensors& t, const PackedSequences& s, void* stream) {
    if (given.operation != Operation::forward) return {StatusCode::unsupported, "forward_packed() computes forward problems, not " + to_text(given)};
    const Problem problem = as_packed(given);
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    TILEWRIGHT_ASSIGN_OR_RETURN(const Problem flat, check_packed(problem, s));
    Extent tensors[] = {
        extent("query", t.query, 1, flat.heads_q, flat.seq_q, flat.head_dim), extent("key", t.key, 1, flat.heads_kv, flat.seq_kv, flat.head_dim),
        extent("value", t.value, 1, flat.heads_kv, flat.seq_kv, flat.head_dim_v), extent("out", t.out, 1, flat.heads_q, flat.seq_q, flat.head_dim_v)};
    bool aligned = true;
    for (Extent& tensor : tensors) {
        TILEWRIGHT_RETURN_IF_ERROR(check_extent(tensor));
        aligned = aligned && is_aligned(tensor, static_cast<int64_t>(size_of(flat.dtype)));
        tensor.batch_stride = tensor.row_stride;
    }
    TILEWRIGHT_RETURN_IF_ERROR(check_variants(flat, t));
    if (problem.batch == 0 || s.query_rows == 0) return {};
    TILEWRIGHT_RETURN_IF_ERROR(check_starts(problem, s, state_->device->info().arch));

    OperationParameters all = parameters_of(problem);
    auto& parameters = std::get<kernel::PackedParameters>(all);
    parameters.forward = forward_parameters(flat, t, tensors);
    set_sequences(parameters, problem, s);
    CallTraits traits;
    traits.aligned = aligned, traits.rescaled = !(parameters.forward.scale > 0);
    TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation ready, state_->ready(problem, traits));
    return launch(*state_->device, ready.kernels, all, stream);
}

}  // namespace tilewright
