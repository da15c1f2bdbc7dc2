// NVIDIA sm_90a, backward: what single threads of the loading warpgroup do: copy tiles, and add parts of dQ in a fixed order.
#pragma once
#include "../backward_tile.h"
#include "hopper.h"
#include "sm90_backward_rows.h"

namespace tilewright::kernel {
// The order in which tiles are copied: those that the block draws, of each the rows and step by step the columns of what is scored and what is carried.
// `index` is the tile, `n` how many steps have been copied before.
template <class Config, class Begin, class CopyRows, class CopyColumns>
TILEWRIGHT_DEVICE void sm90_copy_tiles(const ForwardParameters& p, int& index, unsigned& n, Begin&& begin, CopyRows&& copy_rows, CopyColumns&& copy_columns) {
    for (; index < p.tiles; index = nvidia::draw_tile(p)) {
        BackwardTile<Config> tile = backward_tile_at<Config>(p, index);
        begin(tile);
        BackwardStep step = tile.first_step();
        // The first columns' space is free sooner than that of the only tile of rows.
        if (step.left > 0) copy_columns(Constant<false>(), tile, step);
        copy_rows(tile);
        if (step.left == 0) continue;
        copy_columns(Constant<true>(), tile, step);
        _Pragma("unroll 1") for (++n, step = tile.next(step); step.left > 0; ++n, step = tile.next(step))
            copy_columns(Constant<false>(), tile, step), copy_columns(Constant<true>(), tile, step);
    }
}

// What comes with a tile of columns.
template <class Arch>
constexpr int sm90_statistics_bytes(int which) {
    return !Arch::over_keys ? 0 : (Arch::takes_off(which) ? hopper::parts_bytes : 4) * Arch::columns;
}

// For an Sm90Backward.
template <class Arch>
struct Sm90BackwardLoader {
    using Config = typename Arch::Config;
    using Tile = BackwardTile<Config>;
    static constexpr bool over_keys = Arch::over_keys;
    static constexpr int rows = Arch::rows, columns = Arch::columns, stages = Arch::stages, scored_depth = Arch::scored_depth, carried_depth = Arch::carried_depth;
    static constexpr Sm90BackwardShared shape = Arch::shape;

    // Of one thread: counts the tiles that have added all that they do. In a fixed order, of a thread for each worker: adds what the worker's warps hold when it is the
    // tile's turn, step by step. Each worker's part has turns of its own: less is added between two turns, and no worker waits for the other's.
    static TILEWRIGHT_DEVICE void count_tiles(const PlainBackwardParameters& p, const typename Arch::Shared& shared, int worker) {
        unsigned n = 0, tiles = 0;
        for (;; ++tiles) {
            int index;
            ptx::barrier_wait(shared.rows_full(0), tiles & 1);
            ptx::load_shared(index, shared.tile_index());
            if (index >= p.forward.tiles) return;
            ptx::barrier_arrive(shared.rows_free());
            Tile tile = backward_tile_at<Config>(p.forward, index);
            if constexpr (Arch::ordered) add_in_turn(p, shared, worker, tile, n);
            else ptx::barrier_wait(shared.tile_added(), tiles & 1);
            if constexpr (Arch::works_by_rows) ptx::give_turn(hopper::RowCounts(p).added(Arch::kv_head_of(p, tile)));
        }
    }

    static TILEWRIGHT_DEVICE void add_in_turn(const PlainBackwardParameters& p, const typename Arch::Shared& shared, int worker, const Tile& tile, unsigned& n) {
        constexpr int floats = Arch::sums_floats / Arch::workers;
        _Pragma("unroll 1") for (BackwardStep step = tile.first_step(); step.left > 0; step = tile.next(step), ++n) {
            int part = Arch::place_of(p, tile, step) * Arch::workers + worker, earlier = tile.earlier(step.first);
            float* to = p.query_sums + (long long)part * floats;
            if (earlier > 0) ptx::await_turn(p.turns + part, earlier);
            ptx::barrier_wait(shared.sums_full(worker), n & 1);
            if (earlier > 0) ptx::add_floats(to, shared.sums(4 * worker), floats * 4);
            else ptx::store_floats(to, shared.sums(4 * worker), floats * 4);
            ptx::wait_until_read();
            ptx::barrier_arrive(shared.sums_free(worker));
            ptx::wait_until_added();
            ptx::give_turn(p.turns + part);
        }
    }

    // It has few registers, so it keeps little and computes again what it needs.
    static TILEWRIGHT_DEVICE void load(const Sm90BackwardArguments& arguments, const typename Arch::Shared& shared) {
        const PlainBackwardParameters& p = arguments.parameters;
        constexpr int of_rows = over_keys ? 0 : 4 * rows;
        unsigned n = 0, dealt = 0;
        int index = blockIdx.x;
        auto deal = [&](int bytes) {
            ptx::barrier_wait(shared.rows_free(), (dealt & 1) ^ 1);
            ptx::store_shared(shared.tile_index(), index);
            ptx::barrier_expect(shared.rows_full(0), bytes);
            ++dealt;
        };
        auto copy_statistics = [&](int which, int stage, int batch, int head, int first, int bytes, unsigned full) {
            long long row = (long long)(batch * p.forward.heads_q + head) * p.padded_queries + first;
            const char* from = Arch::takes_off(which) ? (const char*)(which ? p.delta_parts : p.log_sum_parts) + row * hopper::parts_bytes : (const char*)((which ? p.deltas : p.log_sums) + row);
            ptx::copy_bytes(shared.statistics(which, stage), from, bytes, full);
        };
        auto copy_rows = [&](const Tile& tile) {
            deal(shape.row_bytes[0] + of_rows);
            hopper::copy_tile<scored_depth, rows>(shared.row_tile(0), &arguments.row_scored, shared.rows_full(0), tile.first_row, tile.head, tile.batch);
            ptx::barrier_expect(shared.rows_full(1), shape.row_bytes[1] + of_rows);
            hopper::copy_tile<carried_depth, rows>(shared.row_tile(1), &arguments.row_carried, shared.rows_full(1), tile.first_row, tile.head, tile.batch);
            if constexpr (!over_keys)
                for (int which = 0; which < 2; ++which) copy_statistics(which, 0, tile.batch, tile.head, tile.first_row, of_rows, shared.rows_full(which));
        };
        auto copy_columns = [&](auto carried, const Tile& tile, const BackwardStep& step) {
            constexpr int which = decltype(carried)::is, depth = which ? carried_depth : scored_depth, of_columns = sm90_statistics_bytes<Arch>(which);
            hopper::Ring<stages> ring = hopper::Ring<stages>::at(n);
            unsigned full = shared.full(which, ring.stage);
            ptx::barrier_wait(shared.free(which, ring.stage), ring.parity ^ 1);
            ptx::barrier_expect(full, shape.column_bytes[which] + of_columns);
            hopper::copy_tile<depth, columns>(shared.column_tile(which, ring.stage), which ? &arguments.carried : &arguments.scored, full, step.first, step.head, tile.batch);
            if constexpr (over_keys) copy_statistics(which, ring.stage, tile.batch, step.head, step.first, of_columns, full);
        };
        auto begin = [&](const Tile& tile) {
            if constexpr (Arch::works_by_rows) Sm90BackwardRows<Arch>::await_prepared(p, Arch::kv_head_of(p, tile));
        };
        sm90_copy_tiles<Config>(p.forward, index, n, begin, copy_rows, copy_columns);
        deal(0);  // nothing is left
    }
};

}  // namespace tilewright::kernel
