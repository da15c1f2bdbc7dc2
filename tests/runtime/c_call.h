// Tensors and sequences of C++ calls as the C interface takes them.
#pragma once
#include "tilewright/attention.h"
#include "tilewright/tilewright.h"

namespace tilewright {

template <class Tensor>  // InputTensor or OutputTensor
tilewright_tensor c_tensor(const Tensor& of) {
    return {of.data, of.batch_stride, of.head_stride, of.row_stride, of.column_stride};
}

inline tilewright_forward_tensors c_tensors(const ForwardTensors& t) {
    tilewright_forward_tensors tensors = TILEWRIGHT_INIT_FORWARD_TENSORS;
    tensors.query = c_tensor(t.query), tensors.key = c_tensor(t.key), tensors.value = c_tensor(t.value), tensors.out = c_tensor(t.out), tensors.lse = t.lse;
    return tensors;
}

inline tilewright_packed_sequences c_sequences(const PackedSequences& s) {
    tilewright_packed_sequences sequences = TILEWRIGHT_INIT_PACKED_SEQUENCES;
    sequences.query_starts = s.query_starts, sequences.key_starts = s.key_starts, sequences.query_rows = s.query_rows, sequences.key_rows = s.key_rows;
    sequences.index_type = static_cast<int32_t>(s.type);
    return sequences;
}

}  // namespace tilewright
