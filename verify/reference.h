// What attention is, in plain loops: the float64 reference that every kernel is checked against, and the naive
// low-precision attention whose error sets the tolerance. Both read inputs that are already rounded to their type.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tilewright/problem.h"

namespace tilewright {

// A strided tensor [batch][head][row][column] in host memory, not owned. Strides in elements, any value, 0 included.
struct TensorView {
    const unsigned char* data = nullptr;  // of element (0, 0, 0, 0); null: absent
    DType dtype = DType::fp32;
    std::array<int64_t, 4> strides{};

    const void* address(int64_t batch, int64_t head, int64_t row, int64_t column) const;
    double at(int64_t batch, int64_t head, int64_t row, int64_t column) const;
};

struct AttentionInputs {
    Problem problem;  // sizes, mask, and which of the parts below take part
    float scale = 1;
    float softcap = 0;                // natural units; read where problem.softcap
    TensorView query, key, value;     // [batch][heads_q | heads_kv][seq_q | seq_kv][head_dim | head_dim_v]
    TensorView bias;                  // [batch][heads_q][seq_q][seq_kv]; broadcast dimensions have stride 0
    const float* slope = nullptr;     // ALiBi, [heads_q]
    const float* sink = nullptr;      // [heads_q]
};

// One query of one (batch, query head).
struct RowIndex {
    int64_t batch, head, query;
};

// Attention of a list of rows, in the list's order.
struct Answer {
    std::vector<double> out;  // [rows][head_dim_v]
    std::vector<double> lse;  // [rows]
    // Of the reference, [rows][head_dim_v]: what an output is off by where its roundings to the element type are as large as they can be: the root of the sum
    // of their squares, over its probabilities, each times its value, and itself.
    std::vector<double> roundings = {};
};

std::vector<RowIndex> all_rows(const Problem& problem);
// At most `count` different rows: the first and last queries, those around the edges of tiles and of the mask, the rest
// drawn with `seed`. All rows where there are no more than `count`.
std::vector<RowIndex> sample_rows(const Problem& problem, int64_t count, uint64_t seed);

// Keys [begin, end) that `query` sees through the mask (empty: begin == end). A bias of -infinity hides a key beside this.
struct KeyRange {
    int64_t begin, end;
};
KeyRange visible_keys(const Problem& problem, int64_t query);

// Float64 throughout. A key that the mask or a bias of -infinity hides is never read; a row that sees no key gives 0 and
// -infinity (with a sink: 0 and the sink). `threads` workers share the rows; 0: one a processor.
Answer reference_forward(const AttentionInputs& inputs, std::span<const RowIndex> rows, int threads = 0);
// Unfused, in float32: dot products accumulated in order, softmax with its maximum subtracted, P rounded to the element
// type before the second product, out rounded to it after. The same conventions for hidden keys and empty rows.
Answer naive_forward(const AttentionInputs& inputs, std::span<const RowIndex> rows, int threads = 0);

}  // namespace tilewright
