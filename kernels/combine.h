// Merges what several have of the same rows, in their order: each is a sum relative to a maximum of its own.
#pragma once
#include "attention.h"
#include "decode_part.h"

namespace tilewright::kernel {

// Log-sums would do as well, but not where scores are so large that rounding them changes the weights: maxima are exact.
template <class Part, class Softmax, class Output>
TILEWRIGHT_DEVICE void leave(const Part& part, const Softmax& softmax, Output& output, const RowSums& to) {
    TILEWRIGHT_UNROLL for (int r = 0; r < Output::rows; ++r) {
        int row = output.row(r);
        bool inside = part.inside(row);
        float total = softmax.total(r);
        output.store_row(r, 1.0f, (fp32*)to.out + row * to.stride, inside);
        if (inside && output.leads_row()) to.state[2 * row] = softmax.maximum[r], to.state[2 * row + 1] = total;
    }
}

// Some neighbouring columns of a row.
template <class Arch>
struct MergedRow {
    static constexpr int width = Arch::combined_columns;
    float maximum = -infinity, total = 0, sum[width] = {};

    // Adds the first `count` of n.
    template <int n>
    TILEWRIGHT_DEVICE void add(const float (&state)[n][2], const float (&x)[n][width], int count, float scale_log2) {
        float next = maximum;
        TILEWRIGHT_UNROLL for (int i = 0; i < n; ++i)
            if (i < count && state[i][0] > next) next = state[i][0];
        float origin = next == -infinity ? 0.0f : next, kept = Arch::exp2((maximum - origin) * scale_log2);
        maximum = next, total *= kept;
        TILEWRIGHT_UNROLL for (int c = 0; c < width; ++c) sum[c] *= kept;
        TILEWRIGHT_UNROLL for (int i = 0; i < n; ++i) {
            if (i >= count) continue;
            float weight = Arch::exp2((state[i][0] - origin) * scale_log2);
            total += state[i][1] * weight;
            TILEWRIGHT_UNROLL for (int c = 0; c < width; ++c) sum[c] += x[i][c] * weight;
        }
    }
};

// Of every row of the part, a few columns at a time: merges what `load(i, row, column, state, x)` brings of the i-th of `count`, and hands
// the result to `take(row, column, merged)`.
template <class Arch, int at_once, class Part, class Load, class Take>
TILEWRIGHT_DEVICE void merge_rows(const Part& part, int count, float scale_log2, Load&& load, Take&& take) {
    constexpr int width = Arch::combined_columns, pieces = partial_columns(Arch::Config::head_dim_v) / width;
    for (int i = Arch::lane_of_block(); i < part.rows() * pieces; i += Arch::lanes_of_block) {
        int row = i / pieces, column = i % pieces * width;
        MergedRow<Arch> merged;
        for (int first = 0; first < count; first += at_once) {
            float state[at_once][2], x[at_once][width];
            TILEWRIGHT_UNROLL for (int n = 0; n < at_once; ++n) load(min_of(first + n, count - 1), row, column, state[n], x[n]);
            merged.add(state, x, count - first, scale_log2);
        }
        take(row, column, merged);
    }
}

// Writes the result of a row's columns.
template <class Arch, class Part>
TILEWRIGHT_DEVICE void finish(const ForwardParameters& p, const Part& part, int row, int column, const MergedRow<Arch>& merged) {
    using Config = typename Arch::Config;
    using Element = typename Config::Element;
    int query = part.query(row), head = part.head_of(row);
    RowResult result = finish_row<Arch>(p, merged.maximum, merged.total, head);
    Arch::store_columns(row_of((Element*)p.out, p.out_strides, part.batch, head, query) + column, merged.sum, result.factor, Config::head_dim_v - column);
    if (p.lse && column == 0) p.lse[((long long)part.batch * p.heads_q + head) * p.seq_q + query] = result.log_sum;
}

// What the units left of an item, in their order.
template <class Arch, class Part>
TILEWRIGHT_DEVICE void combine(const DecodeParameters& decode, const Part& part, float scale_log2) {
    auto load = [&](int i, int row, int column, float (&state)[2], float (&x)[Arch::combined_columns]) {
        RowSums sums = partial_sums<typename Arch::Config>(decode, part.slot_of(part.first_unit + i));
        Arch::load_fresh(state, sums.state + 2 * row);
        Arch::load_fresh(x, sums.out + row * sums.stride + column);
    };
    merge_rows<Arch, Arch::loads_at_once>(part, part.parts(), scale_log2, load, [&](int row, int column, const MergedRow<Arch>& merged) { finish<Arch>(decode.forward, part, row, column, merged); });
}

}  // namespace tilewright::kernel
