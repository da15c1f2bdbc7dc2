// Sequences of workloads.
#include "verify/sequences.h"

#include <cstring>

#include "verify/element.h"
#include "verify/parallel.h"
#include "verify/random.h"

namespace tilewright {
namespace {

void deal_pages(Workload& w, const WorkloadOptions& options) {
    const Problem& p = w.problem;
    constexpr int32_t no_page = 0x7fffffff;
    w.table_stride = (p.seq_kv + p.page_size - 1) / p.page_size;
    w.block_table.assign(size_t(p.batch * w.table_stride), no_page);
    std::vector<int32_t> pages(static_cast<size_t>(pages_of(w)));
    for (size_t i = 0; i < pages.size(); ++i) pages[i] = int32_t(i);
    for (size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[hash(options.seed, 8, i) % i]);
    for (int64_t s = 0, next = 0; s < p.batch; ++s)
        for (int64_t i = 0; i * p.page_size < w.lengths[size_t(s)]; ++i) w.block_table[size_t(s * w.table_stride + i)] = pages[size_t(next++)];
}

// The first row of each sequence and the end of the last, behind `before` rows that are no sequence's.
std::vector<int64_t> starts_of(const std::vector<int32_t>& lengths, int64_t before) {
    std::vector<int64_t> starts{before};
    for (int32_t length : lengths) starts.push_back(starts.back() + length);
    return starts;
}

// Rows of one head of a sequence, one behind the other.
std::vector<unsigned char> gather(const Workload& w, const Tensor& tensor, int64_t sequence, int64_t head) {
    size_t bytes = size_t(tensor.sizes[3]) * size_of(tensor.dtype);
    std::vector<unsigned char> rows(size_t(w.lengths[size_t(sequence)]) * bytes);
    TensorView from = w.view(tensor);
    for (size_t j = 0; j * bytes < rows.size(); ++j) {
        auto [batch, row] = w.slot(sequence, int64_t(j));
        std::memcpy(rows.data() + j * bytes, from.address(batch, head, row, 0), bytes);
    }
    return rows;
}

void show_rows(Tensor& tensor, int64_t first, int64_t rows) {
    if (!tensor.present()) return;
    tensor.offset += first * tensor.strides[2] * int64_t(size_of(tensor.dtype));
    tensor.sizes[2] = rows;
}

constexpr Tensor Workload::*of_queries[] = {&Workload::query, &Workload::out, &Workload::lse, &Workload::out_gradient, &Workload::lse_gradient, &Workload::query_gradient};
constexpr Tensor Workload::*of_keys[] = {&Workload::key, &Workload::value, &Workload::key_gradient, &Workload::value_gradient};

}  // namespace

int64_t pages_of(const Workload& w) { return w.problem.batch * w.table_stride + 3; }

void deal_sequences(Workload& w, const WorkloadOptions& options) {
    const Problem& p = w.problem;
    if (p.operation != Operation::decode && !p.packed) return;
    w.lengths = options.lengths.empty() ? kv_lengths(p) : options.lengths;
    if (p.page_size > 0) deal_pages(w, options);
    if (!p.packed) return;
    const auto& [before_queries, behind_queries, before_keys, behind_keys] = options.unused_rows;
    w.query_lengths = options.query_lengths.empty() ? query_lengths(p) : options.query_lengths;
    w.query_starts = starts_of(w.query_lengths, before_queries), w.key_starts = starts_of(w.lengths, before_keys);
    w.query_rows = w.query_starts.back() + behind_queries, w.key_rows = w.key_starts.back() + behind_keys;
    w.wide_starts = options.wide_starts;
}

void show_sequences(Workload& w) {
    for (auto tensor : of_queries) show_rows(w.*tensor, w.query_starts.front(), w.query_starts.back() - w.query_starts.front());
    for (auto tensor : of_keys) show_rows(w.*tensor, w.key_starts.front(), w.key_starts.back() - w.key_starts.front());
}

void for_each_sequence(Workload& w, const std::function<void(Workload&, int64_t)>& take) {
    std::vector<Buffer> buffers = std::move(w.buffers);
    const Workload all = w;  // without them
    w.buffers = std::move(buffers);
    for (int64_t s = 0; s < all.problem.batch; ++s) {
        const auto i = size_t(s);
        w.problem = single_sequence(all.problem, all.query_lengths[i], all.lengths[i]);
        for (auto tensor : of_queries) w.*tensor = all.*tensor, show_rows(w.*tensor, all.query_starts[i] - all.query_starts.front(), w.problem.seq_q);
        for (auto tensor : of_keys) w.*tensor = all.*tensor, show_rows(w.*tensor, all.key_starts[i] - all.key_starts.front(), w.problem.seq_kv);
        take(w, s);
    }
    buffers = std::move(w.buffers);
    w = all;
    w.buffers = std::move(buffers);
}

void fill_sequences(Workload& w, const Tensor& tensor, uint64_t seed, uint64_t stream, double spread) {
    const Problem& p = w.problem;
    int64_t columns = tensor.sizes[3];
    for (int64_t s = 0; s < p.batch; ++s)
        parallel_for(p.heads_kv, 0, [&](int64_t h) {
            for (int64_t j = 0; j < w.lengths[size_t(s)]; ++j)
                for (int64_t c = 0; c < columns; ++c) {
                    auto [batch, row] = w.slot(s, j);
                    w.set(tensor, batch, h, row, c, spread * normal(seed, stream, uint64_t(((s * p.heads_kv + h) * p.seq_kv + j) * columns + c)));
                }
        });
}

Workload::Slot Workload::slot(int64_t sequence, int64_t row) const {
    if (problem.packed) return {0, key_starts[size_t(sequence)] - key_starts.front() + row};
    if (problem.page_size == 0) return {sequence, row};
    return {block_table[size_t(sequence * table_stride + row / problem.page_size)], row % problem.page_size};
}

RowIndex Workload::row_of(const RowIndex& of) const {
    return problem.packed ? RowIndex{0, of.head, query_starts[size_t(of.batch)] - query_starts.front() + of.query} : of;
}

SequenceInputs sequence_inputs(const Workload& w, int64_t sequence, int64_t head) {
    int64_t kv_head = head / (w.problem.heads_q / w.problem.heads_kv);
    SequenceInputs one{w.inputs(), gather(w, w.key, sequence, kv_head), gather(w, w.value, sequence, kv_head)};
    AttentionInputs& in = one.inputs;
    Problem& p = in.problem;
    p = single_sequence(p, p.packed ? w.query_lengths[size_t(sequence)] : p.seq_q, w.lengths[size_t(sequence)]);
    p.operation = Operation::forward, p.heads_q = p.heads_kv = 1, p.page_size = 0;
    in.key = {one.key.data(), w.key.dtype, {0, 0, p.head_dim, 1}}, in.value = {one.value.data(), w.value.dtype, {0, 0, p.head_dim_v, 1}};
    const RowIndex first = w.row_of({sequence, head, 0});
    for (TensorView* view : {&in.query, &in.bias})
        if (view->data) view->data = static_cast<const unsigned char*>(view->address(first.batch, head, first.query, 0));
    if (in.slope) in.slope += head;
    if (in.sink) in.sink += head;
    return one;
}

}  // namespace tilewright
