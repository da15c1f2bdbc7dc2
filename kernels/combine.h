// Merges the parts of an item, in the order of the units: each is a sum relative to a maximum of its own.
#pragma once
#include "attention.h"
#include "decode_part.h"

namespace tilewright::kernel {

// Log-sums would do as well, but not where scores are so large that rounding them changes the weights: maxima are exact.
template <class Arch, class Part>
TILEWRIGHT_DEVICE void combine(const DecodeParameters& decode, const Part& part, float scale_log2) {
    using Config = typename Arch::Config;
    using Element = typename Config::Element;
    constexpr int stride = partial_columns(Config::head_dim_v), width = Arch::combined_columns, pieces = stride / width, at_once = Arch::loads_at_once;
    const ForwardParameters& p = decode.forward;
    for (int i = Arch::lane_of_block(); i < part.rows() * pieces; i += Arch::lanes_of_block) {
        int row = i / pieces, column = i % pieces * width, query = part.query(row), head = part.head_of(row);
        float maximum = -infinity, total = 0, sum[width] = {};
        for (int first = part.first_unit; first <= part.last_unit; first += at_once) {
            float state[at_once][2], x[at_once][width];
            TILEWRIGHT_UNROLL for (int n = 0; n < at_once; ++n) {  // past the last: the last again, which is then left out
                long long place = part.slot_of(min_of(first + n, part.last_unit)) * Config::block_q + row;
                Arch::load_fresh(state[n], decode.partial_state + place * 2);
                Arch::load_fresh(x[n], decode.partial_out + place * stride + column);
            }
            TILEWRIGHT_UNROLL for (int n = 0; n < at_once; ++n) {
                if (first + n > part.last_unit) break;
                float next = state[n][0] > maximum ? state[n][0] : maximum, origin = next == -infinity ? 0.0f : next;
                float kept = Arch::exp2((maximum - origin) * scale_log2), added = Arch::exp2((state[n][0] - origin) * scale_log2);
                maximum = next;
                total = total * kept + state[n][1] * added;
                TILEWRIGHT_UNROLL for (int c = 0; c < width; ++c) sum[c] = sum[c] * kept + x[n][c] * added;
            }
        }
        RowResult result = finish_row<Arch>(p, maximum, total, head);
        Arch::store_columns(row_of((Element*)p.out, p.out_strides, part.batch, head, query) + column, sum, result.factor, Config::head_dim_v - column);
        if (p.lse && column == 0) p.lse[((long long)part.batch * p.heads_q + head) * p.seq_q + query] = result.log_sum;
    }
}

}  // namespace tilewright::kernel
