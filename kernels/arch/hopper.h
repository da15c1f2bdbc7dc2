// NVIDIA sm_90a: rings of buffers, the split into producer and consumers, copies of tiles.
#pragma once
#include "hopper_ptx.h"
#include "nvidia.h"

namespace tilewright::kernel {
namespace hopper {

// A position in a ring of `size` buffers; the parity tells one lap from the next.
template <int size>
struct Ring {
    int stage = 0, parity = 0;
    static TILEWRIGHT_DEVICE Ring at(unsigned n) { return {int(n % size), int(n / size & 1)}; }  // after n advances
    TILEWRIGHT_DEVICE void advance() {
        if (++stage == size) stage = 0, parity ^= 1;
    }
};

// Of a warp: what its lanes have read in shared memory, in whose place the copy engine puts something else next.
TILEWRIGHT_DEVICE void settle_reads() { ptx::fence_async(), __syncwarp(); }
// Of a warp that is done with a buffer. One lane arrives for all, which racecheck does not follow: for it every lane does.
constexpr int arriving_lanes = TILEWRIGHT_FOR_RACECHECK ? 32 : 1;
TILEWRIGHT_DEVICE void release(unsigned barrier) {
    if (threadIdx.x % 32 < arriving_lanes) ptx::barrier_arrive(barrier);
}
// Or of one that may be. Without a branch, behind which the compiler takes lanes for parted and computes anew what all of them share. `elects`: any lane arrives and
// not lane 0, so that no register is taken for which lane one is.
template <bool elects>
TILEWRIGHT_DEVICE void release_if(bool done, unsigned barrier) {
    if constexpr (elects && arriving_lanes == 1) ptx::barrier_arrive_once_if(done, barrier);
    else ptx::barrier_arrive_if(done && threadIdx.x % 32 < arriving_lanes, barrier);
}
// That many arrivals a barrier waits for that so many warps release.
constexpr int releases(int warps) { return arriving_lanes * warps; }

// The first warpgroup produces; `workers` warpgroups consume, with the registers that it gives up.
template <int workers, int blocks, int loading = sm90_registers_loading(workers), class Produce, class Consume>
TILEWRIGHT_DEVICE void divide_work(Produce&& produce, Consume&& consume) {
    constexpr bool moves = sm90_moves_registers(workers, blocks);
    if (__shfl_sync(~0u, threadIdx.x / 128, 0) == 0) {
        if constexpr (moves) ptx::give_registers<loading>();
        produce();
    } else {
        if constexpr (moves) ptx::take_registers<sm90_register_limit(workers, blocks, loading)>();
        consume();
    }
}

// A tile of `rows` by `columns` into shared memory, zeros where the tensor ends.
template <int columns, int rows>
TILEWRIGHT_DEVICE void copy_tile(unsigned to, const TensorMap* map, unsigned barrier, int row, int head, int batch) {
    if constexpr (columns % panel_columns == 0) {
        ptx::copy_panels(to, map, barrier, row, head, batch);
    } else {
        TILEWRIGHT_UNROLL for (int panel = 0; panel < sm90_panels(columns); ++panel)
            ptx::copy_panel(to + panel * rows * 128, map, barrier, panel * panel_columns, row, head, batch);
    }
}

}  // namespace hopper
}  // namespace tilewright::kernel
