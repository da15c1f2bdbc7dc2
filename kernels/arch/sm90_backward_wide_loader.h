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

    // Of one thread.
    static TILEWRIGHT_DEVICE void load(const Sm90BackwardArguments& arguments, const typename Arch::Shared& shared) {
        Sm90BackwardCopies<Arch> copies{arguments, shared};
        copies.tiles([](const Tile&) {}, [&](auto carried, const Tile& tile, const BackwardStep& step) {
            Buffer buffer = Buffer::template at<decltype(carried)::is>(copies.n());
            ptx::barrier_wait(shared.free(buffer.index), buffer.parity ^ 1);
            copies.columns(carried, shared.buffer(buffer.index), buffer.stage, shared.full(buffer.index), tile, step);
        });
    }
};

}  // namespace tilewright::kernel
