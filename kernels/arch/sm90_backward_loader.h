// NVIDIA sm_90a, backward: what single threads of the loading warpgroup do: copy tiles, and add parts of dQ in a fixed order.
#pragma once
#include "../backward_tile.h"
#include "hopper.h"
#include "sm90_backward_rows.h"

namespace tilewright::kernel {

// Tiles of rows, and the statistics of rows or columns: what an Sm90Backward and an Sm90BackwardWide have in common of the one thread that copies.
template <class Arch>
struct Sm90BackwardCopies {
    using Tile = typename Arch::Tile;
    static constexpr bool over_keys = Arch::over_keys;
    const Sm90BackwardArguments& arguments;
    const typename Arch::Shared& shared;
    int index = blockIdx.x;  // of the tile
    unsigned done = 0;  // twice the steps, and whether the tiles are an odd number: registers are short

    TILEWRIGHT_DEVICE unsigned n() const { return done / 2; }

    static constexpr int statistics_bytes(int which) { return (Arch::takes_off(which) ? hopper::parts_bytes : 4) * (over_keys ? Arch::columns : Arch::rows); }
    TILEWRIGHT_DEVICE void statistics(int which, int stage, int batch, int head, int first, unsigned full) const {
        const PlainBackwardParameters& p = arguments.parameters;
        long long row = (long long)(batch * p.forward.heads_q + head) * p.padded_queries + first;
        const char* from = Arch::takes_off(which) ? (const char*)(which ? p.delta_parts : p.log_sum_parts) + row * hopper::parts_bytes : (const char*)((which ? p.deltas : p.log_sums) + row);
        ptx::copy_bytes(shared.statistics(which, stage), from, statistics_bytes(which), full);
    }
    TILEWRIGHT_DEVICE void await_place(int which) const { ptx::barrier_wait(shared.rows_free(which), (done & 1) ^ 1); }
    // Consumers learn which tile it is from what is scored.
    TILEWRIGHT_DEVICE void deal(int bytes) const {
        await_place(0);
        ptx::store_shared(shared.tile_index(), index);
        ptx::barrier_expect(shared.rows_full(0), bytes);
    }
    template <class Carried>
    TILEWRIGHT_DEVICE void rows(Carried, const Tile& tile) {
        constexpr int which = Carried::is, bytes = Arch::shape.row_bytes[which] + (over_keys ? 0 : statistics_bytes(which));
        if constexpr (!which || Arch::Config::gives_scored) {  // dV alone takes S alone
            unsigned full = shared.rows_full(which);
            if constexpr (which) await_place(which), ptx::barrier_expect(full, bytes);
            else deal(bytes);
            hopper::copy_tile<which ? Arch::carried_depth : Arch::scored_depth, Arch::rows>(shared.row_tile(which), which ? &arguments.row_carried : &arguments.row_scored, full, tile.first_row, tile.head, tile.batch);
            if constexpr (!over_keys) statistics(which, 0, tile.batch, tile.head, tile.first_row, full);
        }
    }
    // Into a place that is free.
    template <class Carried>
    TILEWRIGHT_DEVICE void columns(Carried, unsigned to, int stage, unsigned full, const Tile& tile, const BackwardStep& step) const {
        constexpr int which = Carried::is, depth = which ? Arch::carried_depth : Arch::scored_depth;
        ptx::barrier_expect(full, sm90_tile_bytes(Arch::columns, depth) + (over_keys ? statistics_bytes(which) : 0));
        hopper::copy_tile<depth, Arch::columns>(to, which ? &arguments.carried : &arguments.scored, full, step.first, step.head, tile.batch);
        if constexpr (over_keys) statistics(which, stage, tile.batch, step.head, step.first, full);
    }
    // In the order in which there is room: the tiles that the block draws, of each the rows and step by step the columns of what is scored and what is carried.
    // copy_columns(carried, tile, step) waits for their place.
    template <class Begin, class CopyColumns>
    TILEWRIGHT_DEVICE void tiles(Begin&& begin, CopyColumns&& copy_columns) {
        const ForwardParameters& p = arguments.parameters.forward;
        for (; index < p.tiles; index = nvidia::draw_tile(p)) {
            Tile tile = backward_tile_at<typename Arch::Config>(p, index);
            begin(tile);
            BackwardStep step = tile.first_step();
            constexpr bool keys_last = Arch::gives_queries, columns_first = keys_last && !Arch::shares_carried;  // parts of dQ take keys to the end
            if (step.left > 0) copy_columns(Constant<false>(), tile, step);
            if (columns_first && step.left > 0) copy_columns(Constant<true>(), tile, step);
            rows(Constant<keys_last>(), tile), rows(Constant<!keys_last>(), tile);
            done ^= 1;
            if (step.left == 0) continue;
            if (!columns_first) copy_columns(Constant<true>(), tile, step);
            _Pragma("unroll 1") for (done += 2, step = tile.next(step); step.left > 0; done += 2, step = tile.next(step))
                copy_columns(Constant<false>(), tile, step), copy_columns(Constant<true>(), tile, step);
        }
        deal(0);  // nothing is left
    }
};

// For an Sm90Backward.
template <class Arch>
struct Sm90BackwardLoader {
    using Config = typename Arch::Config;
    using Tile = BackwardTile<Config>;

    // Of one thread: counts the tiles that have added all that they do. In a fixed order, of a thread for each worker: adds what the worker's warps hold when it is the
    // tile's turn, step by step. Each worker's part has turns of its own: less is added between two turns, and no worker waits for the other's.
    static TILEWRIGHT_DEVICE void count_tiles(const PlainBackwardParameters& p, const typename Arch::Shared& shared, int worker) {
        unsigned n = 0, tiles = 0;
        for (;; ++tiles) {
            int index;
            ptx::barrier_wait(shared.rows_full(0), tiles & 1);
            ptx::load_shared(index, shared.tile_index());
            if (index >= p.forward.tiles) return;
            ptx::barrier_arrive(shared.rows_free(0));
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
        Sm90BackwardCopies<Arch> copies{arguments, shared};
        auto begin = [&](const Tile& tile) {
            if constexpr (Arch::works_by_rows) Sm90BackwardRows<Arch>::await_prepared(p, Arch::kv_head_of(p, tile));
        };
        copies.tiles(begin, [&](auto carried, const Tile& tile, const BackwardStep& step) {
            constexpr int which = decltype(carried)::is;
            hopper::Ring<Arch::stages> ring = hopper::Ring<Arch::stages>::at(copies.n());
            ptx::barrier_wait(shared.free(which, ring.stage), ring.parity ^ 1);
            copies.columns(carried, shared.column_tile(which, ring.stage), ring.stage, shared.full(which, ring.stage), tile, step);
        });
    }
};

}  // namespace tilewright::kernel
