// NVIDIA sm_90a, backward: products by warpgroups that own 64 rows each; rows once and columns in rings by the copy engine.
#pragma once
#include "../backward_tile.h"
#include "hopper_wgmma.h"
#include "nvidia_backward_garbage.h"

namespace tilewright::kernel {
namespace ptx {

TILEWRIGHT_DEVICE void copy_bytes(unsigned to, const void* from, int bytes, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
TILEWRIGHT_DEVICE float2 load_shared2(unsigned from) {
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(from) : "memory");
    return x;
}
TILEWRIGHT_DEVICE float load_shared1(unsigned from) {
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
    return x;
}

}  // namespace ptx

template <class Config_>
struct Sm90Backward : hopper::Common {
    using Config = Config_;
    using Element = typename Config::Element;
    using Tile = BackwardTile<Config>;
    static constexpr bool over_keys = Config::over_keys;
    static constexpr int rows = Tile::block_rows, columns = Tile::block_columns, stages = Config::stages, workers = Config::workers;
    static constexpr int scored_depth = Config::head_dim, carried_depth = Config::head_dim_v;
    static constexpr Sm90BackwardShared shape = sm90_backward_shared(rows, columns, scored_depth, carried_depth, stages, over_keys);
    static constexpr int threads = 128 * (workers + 1), shared_bytes = shape.bytes;
    static_assert(rows == 64 * workers && columns % 16 == 0 && Config::aligned);

    using Arguments = Sm90BackwardArguments;
    using Scores = hopper::Accumulator<Element, columns>;
    using ScoredGradient = hopper::Accumulator<Element, scored_depth>;
    using CarriedGradient = hopper::Accumulator<Element, carried_depth>;
    using Rounded = nvidia::Rounded<Scores>;
    using Slopes = typename Choose<Config::softcap, Scores, NoFragment>::type;

    // What the prologue wrote of the queries, which are columns (two neighbours at a time) or rows.
    struct Statistics {
        static constexpr int pairs = over_keys ? Scores::columns / 2 : 1;
        float2 x[pairs];
        TILEWRIGHT_DEVICE explicit Statistics(unsigned from) {
            if constexpr (over_keys) {
                TILEWRIGHT_UNROLL for (int c = 0; c < pairs; ++c) x[c] = ptx::load_shared2(from + 4 * Scores::column(2 * c));
            } else {
                x[0] = {ptx::load_shared1(from + 4 * Scores::row(0)), ptx::load_shared1(from + 4 * Scores::row(1))};
            }
        }
        TILEWRIGHT_DEVICE float at(int r, int c) const {
            if constexpr (over_keys) return c % 2 ? x[c / 2].y : x[c / 2].x;
            else return r ? x[0].y : x[0].x;
        }
    };

    // An operand's depth follows from what it is: its type.
    template <int depth>
    struct Operand {
        unsigned at;
    };
    // The first instruction sets the accumulator, so that its registers are free until then.
    template <int depth>
    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, Operand<depth> left, Operand<depth> right) {
        ptx::wgmma_fence();
        TILEWRIGHT_UNROLL for (int k = 0; k < round_up(depth, 16) / 16; ++k) {
            int panel = k / 4, within = k % 4 * 32;
            unsigned long long a = hopper::descriptor(left.at + ((panel * rows * 128 + within) >> 4));
            unsigned long long b = hopper::descriptor(right.at + ((panel * columns * 128 + within) >> 4));
            if (k == 0) wgmma_scores_first(scores.d[0], a, b);
            else wgmma_scores(scores.d[0], a, b);
        }
        ptx::wgmma_commit();
    }
    template <class Gradient, int depth>
    static TILEWRIGHT_DEVICE void start_gradient(Gradient& gradient, const Rounded& left, Operand<depth> right) {
        hopper::start_output<columns>(gradient, left, right.at);
    }

    // Where things are in shared memory: 0 is of what is scored, 1 of what is carried.
    struct Shared {
        unsigned base;
        TILEWRIGHT_DEVICE explicit Shared(char* shared) : base((ptx::shared_address(shared) + sm90_alignment - 1) & ~(sm90_alignment - 1u)) {}
        TILEWRIGHT_DEVICE unsigned row_tile(int which) const { return base + which * shape.row_bytes[0]; }
        TILEWRIGHT_DEVICE unsigned column_tile(int which, int stage) const {
            return base + shape.row_bytes[0] + shape.row_bytes[1] + which * stages * shape.column_bytes[0] + stage * shape.column_bytes[which];
        }
        TILEWRIGHT_DEVICE unsigned statistics(int which, int stage) const { return base + shape.statistics + (which * (over_keys ? stages : 1) + stage) * shape.statistics_bytes; }
        TILEWRIGHT_DEVICE unsigned garbage() const { return base + shape.barriers + 8 * (1 + 4 * stages); }  // was any found?
        TILEWRIGHT_DEVICE unsigned rows_full() const { return base + shape.barriers; }
        TILEWRIGHT_DEVICE unsigned full(int which, int stage) const { return base + shape.barriers + 8 * (1 + which * stages + stage); }
        TILEWRIGHT_DEVICE unsigned free(int which, int stage) const { return base + shape.barriers + 8 * (1 + (2 + which) * stages + stage); }
    };

    struct Pipeline {
        Shared shared;
        int worker = __shfl_sync(~0u, (int)threadIdx.x / 128 - 1, 0);
        hopper::Ring<stages> scored_ring, carried_ring;

        TILEWRIGHT_DEVICE Operand<scored_depth> row_scored() const {
            ptx::barrier_wait(shared.rows_full(), 0);
            return {hopper::operand(shared.row_tile(0) + worker * 64 * 128, rows)};
        }
        TILEWRIGHT_DEVICE Operand<carried_depth> row_carried() const { return {hopper::operand(shared.row_tile(1) + worker * 64 * 128, rows)}; }
        TILEWRIGHT_DEVICE Operand<scored_depth> scored(const BackwardStep&) const {
            ptx::barrier_wait(shared.full(0, scored_ring.stage), scored_ring.parity);
            return {hopper::operand(shared.column_tile(0, scored_ring.stage), columns)};
        }
        TILEWRIGHT_DEVICE Operand<carried_depth> carried(const BackwardStep&) const {
            ptx::barrier_wait(shared.full(1, carried_ring.stage), carried_ring.parity);
            return {hopper::operand(shared.column_tile(1, carried_ring.stage), columns)};
        }
        TILEWRIGHT_DEVICE Statistics log_sums(const BackwardStep&) const { return Statistics(shared.statistics(0, over_keys ? scored_ring.stage : 0)); }
        TILEWRIGHT_DEVICE Statistics deltas(const BackwardStep&) const { return Statistics(shared.statistics(1, over_keys ? carried_ring.stage : 0)); }
        TILEWRIGHT_DEVICE void release_scored() { hopper::release(shared.free(0, scored_ring.stage)), scored_ring.advance(); }
        TILEWRIGHT_DEVICE void release_carried() { hopper::release(shared.free(1, carried_ring.stage)), carried_ring.advance(); }
        TILEWRIGHT_DEVICE void release_rows() const {}

        // All consumers together, when none is reading the step's columns and none has started its gradients.
        bool found_garbage = false;
        TILEWRIGHT_DEVICE void hide_garbage() {
            if constexpr (Config::mask != Mask::none) {
                constexpr int cleaners = 128 * workers, barrier = 1;
                int rank = (int)threadIdx.x - 128;
                ptx::named_sync(barrier, cleaners);
                unsigned scored = shared.column_tile(0, scored_ring.stage), carried = shared.column_tile(1, carried_ring.stage);
                bool found = nvidia::clean<Element, shape.column_bytes[0] / 16, cleaners>(rank, [&](int i) { return scored + i * 16; });
                if constexpr (over_keys) found |= nvidia::clean<Element, shape.column_bytes[1] / 16, cleaners>(rank, [&](int i) { return carried + i * 16; });
                if (found) ptx::store_shared(shared.garbage(), 1), ptx::fence_async();
                ptx::named_sync(barrier, cleaners);
                int any;
                ptx::load_shared(any, shared.garbage());
                found_garbage |= any != 0;
            }
        }
        TILEWRIGHT_DEVICE void reveal_garbage(const BackwardParameters& p, const Tile& tile) const {
            if constexpr (Config::mask != Mask::none) {
                if (!found_garbage) return;
                const ForwardParameters& f = p.forward;
                int first = worker * 64 + (int)threadIdx.x % 128 / 32 * 16;
                if constexpr (over_keys) {
                    nvidia::reveal_gradient<false, scored_depth, Tile, Element>(tile, first, 16, f.query, f.query_strides, p.key_gradient, p.key_gradient_strides);
                    nvidia::reveal_gradient<true, carried_depth, Tile, Element>(tile, first, 16, p.out_gradient, p.out_gradient_strides, p.value_gradient, p.value_gradient_strides);
                } else {
                    nvidia::reveal_gradient<false, scored_depth, Tile, Element>(tile, first, 16, f.key, f.key_strides, p.query_gradient, p.query_gradient_strides);
                }
            }
        }
    };

    // A block does one tile.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_tile(const Arguments& arguments, char* raw_shared, Body&& body) {
        Shared shared(raw_shared);
        if (threadIdx.x == 0) {
            ptx::store_shared(shared.garbage(), 0);
            ptx::barrier_init(shared.rows_full(), 1);
            for (int which = 0; which < 2; ++which)
                for (int stage = 0; stage < stages; ++stage) ptx::barrier_init(shared.full(which, stage), 1), ptx::barrier_init(shared.free(which, stage), 4 * workers);
            ptx::barrier_init_done();
        }
        __syncthreads();
        hopper::divide_work<workers, 1>(
            [&] {
                if (threadIdx.x == 0) load(arguments, shared);
            },
            [&] {
                Tile tile = backward_tile_at<Config>(arguments.parameters.forward, blockIdx.x);
                Pipeline pipeline{shared};
                body(tile, pipeline);
            });
    }

private:
    static TILEWRIGHT_DEVICE void load(const Arguments& arguments, const Shared& shared) {
        const BackwardParameters& p = arguments.parameters;
        Tile tile = backward_tile_at<Config>(p.forward, blockIdx.x);
        auto statistics = [&](const float* of, int head, int first) { return of + (((long long)tile.batch * p.forward.heads_q + head) * p.padded_queries + first); };
        constexpr int of_rows = over_keys ? 0 : shape.statistics_bytes, of_columns = over_keys ? shape.statistics_bytes : 0;
        ptx::barrier_expect(shared.rows_full(), shape.row_bytes[0] + shape.row_bytes[1] + 2 * of_rows);
        hopper::copy_tile<scored_depth, rows>(shared.row_tile(0), &arguments.row_scored, shared.rows_full(), tile.first_row, tile.head, tile.batch);
        hopper::copy_tile<carried_depth, rows>(shared.row_tile(1), &arguments.row_carried, shared.rows_full(), tile.first_row, tile.head, tile.batch);
        if constexpr (!over_keys) {
            ptx::copy_bytes(shared.statistics(0, 0), statistics(p.log_sums, tile.head, tile.first_row), of_rows, shared.rows_full());
            ptx::copy_bytes(shared.statistics(1, 0), statistics(p.deltas, tile.head, tile.first_row), of_rows, shared.rows_full());
        }
        hopper::Ring<stages> ring;
        _Pragma("unroll 1") for (BackwardStep step = tile.first_step(); step.left > 0; step = tile.next(step), ring.advance()) {
            unsigned full = shared.full(0, ring.stage);
            ptx::barrier_wait(shared.free(0, ring.stage), ring.parity ^ 1);
            ptx::barrier_expect(full, shape.column_bytes[0] + of_columns);
            hopper::copy_tile<scored_depth, columns>(shared.column_tile(0, ring.stage), &arguments.scored, full, step.first, step.head, tile.batch);
            if constexpr (over_keys) ptx::copy_bytes(shared.statistics(0, ring.stage), statistics(p.log_sums, step.head, step.first), of_columns, full);
            full = shared.full(1, ring.stage);
            ptx::barrier_wait(shared.free(1, ring.stage), ring.parity ^ 1);
            ptx::barrier_expect(full, shape.column_bytes[1] + of_columns);
            hopper::copy_tile<carried_depth, columns>(shared.column_tile(1, ring.stage), &arguments.carried, full, step.first, step.head, tile.batch);
            if constexpr (over_keys) ptx::copy_bytes(shared.statistics(1, ring.stage), statistics(p.deltas, step.head, step.first), of_columns, full);
        }
    }
};

}  // namespace tilewright::kernel
