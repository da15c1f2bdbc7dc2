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
// the result to `take(row, column, merged)`. A lane has `sums` of each of `pieces` on their way at once.
template <class Arch, int sums, int pieces, class Part, class Load, class Take>
TILEWRIGHT_DEVICE void merge_rows(const Part& part, int count, float scale_log2, Load&& load, Take&& take) {
    constexpr int width = Arch::combined_columns, of_row = partial_columns(Arch::Config::head_dim_v) / width, lanes = Arch::lanes_of_block;
    int all = part.rows() * of_row;
    for (int base = Arch::lane_of_block(); base < all; base += lanes * pieces) {
        MergedRow<Arch> merged[pieces];
        for (int first = 0; first < count; first += sums) {
            float state[pieces][sums][2], x[pieces][sums][width];
            TILEWRIGHT_UNROLL for (int p = 0; p < pieces; ++p) TILEWRIGHT_UNROLL for (int n = 0; n < sums; ++n) {  // past the last: the last again
                int i = min_of(base + p * lanes, all - 1);
                load(min_of(first + n, count - 1), i / of_row, i % of_row * width, state[p][n], x[p][n]);
            }
            TILEWRIGHT_UNROLL for (int p = 0; p < pieces; ++p) merged[p].add(state[p], x[p], count - first, scale_log2);
        }
        TILEWRIGHT_UNROLL for (int p = 0; p < pieces; ++p)
            if (int i = base + p * lanes; i < all) take(i / of_row, i % of_row * width, merged[p]);
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
    auto take = [&](int row, int column, const MergedRow<Arch>& merged) { finish<Arch>(decode.forward, part, row, column, merged); };
    constexpr int at_once = Arch::loads_at_once, few = min_of(4, at_once);
    if (part.parts() <= few) merge_rows<Arch, few, at_once / few>(part, part.parts(), scale_log2, load, take);
    else merge_rows<Arch, at_once, 1>(part, part.parts(), scale_log2, load, take);
}

}  // namespace tilewright::kernel
