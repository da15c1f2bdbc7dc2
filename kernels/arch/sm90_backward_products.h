// NVIDIA sm_90a, backward: the products of a step, and what they take and give.
#pragma once
#include "../backward_tile.h"
#include "hopper_wgmma.h"
#include "sm90_query_sums.h"
#include "sm90_statistics.h"

namespace tilewright::kernel {

template <class Config>
struct Sm90BackwardProducts : hopper::Common {
    using Element = typename Config::Element;
    using Tile = BackwardTile<Config>;
    static constexpr bool over_keys = Config::over_keys, gives_queries = over_keys && Config::dq != 0;
    static constexpr bool ordered = Config::dq == 2;  // dQ's sums: it is what takes most registers
    static constexpr int rows = Tile::block_rows, columns = Tile::block_columns, workers = Config::workers;
    static constexpr int scored_depth = Config::head_dim, carried_depth = Config::head_dim_v;

    struct Scores : hopper::Accumulator<Element, columns> {
        using Base = hopper::Accumulator<Element, columns>;
        // Where registers are short, the number of a lane's row is found where it is needed.
        static TILEWRIGHT_DEVICE int row(int r) {
            if constexpr (!ordered) return Base::row(r);
            unsigned thread = threadIdx.x;
            ptx::forget(thread);
            return Base::row_of((int)thread, r);
        }
    };
    using ScoredGradient = hopper::Accumulator<Element, scored_depth>;
    using CarriedGradient = hopper::Accumulator<Element, carried_depth>;
    struct Rounded : nvidia::Rounded<Scores> {  // from the last on, as for_each_element() has them
        TILEWRIGHT_DEVICE void assign(Scores& scores) {
            TILEWRIGHT_UNROLL for (int i = Scores::columns - 1; i >= 0; --i) this->a[0][i] = scores.pair(0, i);
        }
    };
    using Sums = hopper::QuerySums<gives_queries ? columns : 64, backward_sum_columns(scored_depth), workers>;
    using QueryGradient = hopper::Accumulator<Element, Sums::width>;

    // An operand's depth follows from what it is: its type.
    template <int depth>
    struct Operand {
        unsigned at;
    };
    template <int depth>
    struct Columns : Operand<depth> {  // with statistics to be taken off
        unsigned parts, factors;       // in shared memory
    };
    // The first instruction sets the accumulator, so that its registers are free until then.
    template <int depth>
    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, Operand<depth> left, Operand<depth> right) {
        ptx::wgmma_fence();
        start_products<true>(scores, left, right);
    }
    template <int depth>
    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, Operand<depth> left, Columns<depth> right) {
        ptx::wgmma_fence();
        wgmma_statistics(scores.d[0], hopper::factors_descriptor(right.factors), hopper::parts_descriptor(right.parts));
        start_products<false>(scores, left, Operand<depth>(right));
    }
    template <bool sets, int depth>
    static TILEWRIGHT_DEVICE void start_products(Scores& scores, Operand<depth> left, Operand<depth> right) {
        TILEWRIGHT_UNROLL for (int k = 0; k < round_up(depth, 16) / 16; ++k) {
            int panel = k / 4, within = k % 4 * 32;
            unsigned long long a = hopper::descriptor(left.at + ((panel * rows * 128 + within) >> 4));
            unsigned long long b = hopper::descriptor(right.at + ((panel * columns * 128 + within) >> 4));
            if (sets && k == 0) wgmma_scores_first(scores.d[0], a, b);
            else wgmma_scores(scores.d[0], a, b);
        }
        ptx::wgmma_commit();
    }
    template <class Gradient, int depth>
    static TILEWRIGHT_DEVICE void start_gradient(Gradient& gradient, const Rounded& left, Operand<depth> right) {
        hopper::start_output<columns>(gradient, left, right.at);
    }
    // 64 rows by `columns` into a panel whose rows are the columns.
    static TILEWRIGHT_DEVICE void store_turned(unsigned panel, const Rounded& x) {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, row = lane % 8 + lane / 16 * 8, piece = 2 * warp + lane / 8 % 2;
        unsigned to = panel + row * 128 + (piece ^ row % 8) * 16;
        TILEWRIGHT_UNROLL for (int k = 0; k < columns / 16; ++k) ptx::store_matrices_turned(to + k * 2048, x.a[0][4 * k], x.a[0][4 * k + 1], x.a[0][4 * k + 2], x.a[0][4 * k + 3]);
    }
    // A worker's part of dQ = dS K: some of the queries, or of the columns of K.
    struct QueryOperands {
        unsigned changes, keys;
    };
    static TILEWRIGHT_DEVICE void start_query_part(QueryGradient& part, QueryOperands operands) {
        ptx::wgmma_fence();
        TILEWRIGHT_UNROLL for (int k = 0; k < rows / 16; ++k) {
            unsigned long long a = hopper::descriptor(operands.changes + ((k / 4 * columns * 128 + k % 4 * 32) >> 4)), b = hopper::descriptor(operands.keys + (k * 2048 >> 4));
            if (k == 0) wgmma_queries_first(part.d[0], a, b);
            else wgmma_queries(part.d[0], a, b);
        }
        ptx::wgmma_commit();
    }
};

}  // namespace tilewright::kernel
