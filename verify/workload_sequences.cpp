// Sequences of a decode workload: where their keys lie, and each as a problem of its own.
#include <cstring>

#include "verify/workload.h"

namespace tilewright {
namespace {

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

}  // namespace

Workload::Slot Workload::slot(int64_t sequence, int64_t row) const {
    if (problem.page_size == 0) return {sequence, row};
    return {block_table[size_t(sequence * table_stride + row / problem.page_size)], row % problem.page_size};
}

SequenceInputs sequence_inputs(const Workload& w, int64_t sequence, int64_t head) {
    int64_t kv_head = head / (w.problem.heads_q / w.problem.heads_kv);
    SequenceInputs one{w.inputs(), gather(w, w.key, sequence, kv_head), gather(w, w.value, sequence, kv_head)};
    AttentionInputs& in = one.inputs;
    Problem& p = in.problem;
    p.operation = Operation::forward, p.batch = p.heads_q = p.heads_kv = 1, p.seq_kv = w.lengths[size_t(sequence)];
    p.page_size = 0, p.shortest_kv = -1, p.length_seed = 0;
    in.key = {one.key.data(), w.key.dtype, {0, 0, p.head_dim, 1}}, in.value = {one.value.data(), w.value.dtype, {0, 0, p.head_dim_v, 1}};
    for (TensorView* view : {&in.query, &in.bias})
        if (view->data) view->data = static_cast<const unsigned char*>(view->address(sequence, head, 0, 0));
    if (in.slope) in.slope += head;
    if (in.sink) in.sink += head;
    return one;
}

}  // namespace tilewright
