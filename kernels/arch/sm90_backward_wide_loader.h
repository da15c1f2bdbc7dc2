// NVIDIA sm_90a, backward of wide heads: what single threads of the loading warpgroup do: copy tiles, and add parts of dQ to memory.
#pragma once
#include "sm90_backward_loader.h"

namespace tilewright::kernel {

// For an Sm90BackwardWide.
template <class Arch>
struct Sm90WideLoader {
    using Config = typename Arch::Config;
    using Tile = BackwardTile<Config>;
    using Buffer = typename Arch::Buffer;
    static constexpr bool over_keys = Arch::over_keys, gives_scored = Arch::gives_scored;
    static constexpr int rows = Arch::rows, columns = Arch::columns, scored_depth = Arch::scored_depth, carried_depth = Arch::carried_depth;
    static constexpr Sm90WideShared shape = Arch::shape;

    // Of one thread: adds what all warps hold, and gives the buffer back.
    static TILEWRIGHT_DEVICE void add_held(const PlainBackwardParameters& p, const typename Arch::Shared& shared) {
        unsigned n = 0;
        for (unsigned tiles = 0;; ++tiles) {
            int index;
            ptx::barrier_wait(shared.rows_full(0), tiles & 1);
            ptx::load_shared(index, shared.tile_index());
            if (index >= p.forward.tiles) break;
            ptx::barrier_arrive(shared.rows_free(0));
            Tile tile = backward_tile_at<Config>(p.forward, index);
            _Pragma("unroll 1") for (BackwardStep step = tile.first_step(); step.left > 0; step = tile.next(step), ++n) {
                Buffer buffer = Buffer::template at<0>(n);
                ptx::barrier_wait(shared.part_held(buffer.index), buffer.parity);
                float* to = Arch::sums_at(p, Arch::place_of(p, tile, step)) + Arch::at_once * 128;
                _Pragma("unroll 1") for (int warp = 0; warp < Arch::threads / 32 - 4; ++warp)
                    ptx::add_floats(to + warp * Arch::Sums::warp_floats, shared.buffer(buffer.index) + warp * Arch::held_bytes, Arch::held_bytes);
                ptx::wait_until_read();
                ptx::barrier_arrive(shared.free(buffer.index));
            }
        }
        ptx::wait_until_added();
    }

    // Of one thread. It has few registers, so it keeps little and computes again what it needs.
    static TILEWRIGHT_DEVICE void load(const Sm90BackwardArguments& arguments, const typename Arch::Shared& shared) {
        const PlainBackwardParameters& p = arguments.parameters;
        constexpr int of_rows = over_keys ? 0 : 4 * rows;
        unsigned n = 0, dealt = 0;
        int index = blockIdx.x;
        auto copy_statistics = [&](int which, int stage, int batch, int head, int first, int bytes, unsigned full) {
            long long row = (long long)(batch * p.forward.heads_q + head) * p.padded_queries + first;
            const char* from = Arch::takes_off(which) ? (const char*)(which ? p.delta_parts : p.log_sum_parts) + row * hopper::parts_bytes : (const char*)((which ? p.deltas : p.log_sums) + row);
            ptx::copy_bytes(shared.statistics(which, stage), from, bytes, full);
        };
        auto deal = [&](int bytes) {
            ptx::barrier_wait(shared.rows_free(0), (dealt & 1) ^ 1);
            ptx::store_shared(shared.tile_index(), index);
            ptx::barrier_expect(shared.rows_full(0), bytes);
        };
        auto copy_rows = [&](const Tile& tile) {
            deal(shape.row_bytes[0] + of_rows);
            hopper::copy_tile<scored_depth, rows>(shared.row_tile(0), &arguments.row_scored, shared.rows_full(0), tile.first_row, tile.head, tile.batch);
            if constexpr (!over_keys) copy_statistics(0, 0, tile.batch, tile.head, tile.first_row, of_rows, shared.rows_full(0));
            if constexpr (gives_scored) {
                ptx::barrier_wait(shared.rows_free(1), (dealt & 1) ^ 1);
                ptx::barrier_expect(shared.rows_full(1), shape.row_bytes[1] + of_rows);
                hopper::copy_tile<carried_depth, rows>(shared.row_tile(1), &arguments.row_carried, shared.rows_full(1), tile.first_row, tile.head, tile.batch);
                if constexpr (!over_keys) copy_statistics(1, 0, tile.batch, tile.head, tile.first_row, of_rows, shared.rows_full(1));
            }
            ++dealt;
        };
        auto copy_columns = [&](auto carried, const Tile& tile, const BackwardStep& step) {
            constexpr int which = decltype(carried)::is, depth = which ? carried_depth : scored_depth, of_columns = sm90_statistics_bytes<Arch>(which);
            Buffer buffer = Buffer::template at<which>(n);
            unsigned full = shared.full(buffer.index);
            ptx::barrier_wait(shared.free(buffer.index), buffer.parity ^ 1);
            ptx::barrier_expect(full, sm90_tile_bytes(columns, depth) + of_columns);
            hopper::copy_tile<depth, columns>(shared.buffer(buffer.index), which ? &arguments.carried : &arguments.scored, full, step.first, step.head, tile.batch);
            if constexpr (over_keys) copy_statistics(which, buffer.stage, tile.batch, step.head, step.first, of_columns, full);
        };
        sm90_copy_tiles<Config>(p.forward, index, n, [](const Tile&) {}, copy_rows, copy_columns);
        deal(0);  // nothing is left
    }
};

}  // namespace tilewright::kernel
