// NVIDIA sm_90a: barriers in shared memory, the copy engine, register reallocation; rings, and the split into producer and consumers.
#pragma once
#include "nvidia.h"

namespace tilewright::kernel {
namespace ptx {

TILEWRIGHT_DEVICE void barrier_init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
TILEWRIGHT_DEVICE void barrier_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
TILEWRIGHT_DEVICE void barrier_arrive(unsigned barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
TILEWRIGHT_DEVICE void barrier_expect(unsigned barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
TILEWRIGHT_DEVICE void barrier_wait(unsigned barrier, int parity) {
    asm volatile(
        "{\n.reg .pred done;\n"
        "again:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}" ::"r"(barrier), "r"(parity)
        : "memory");
}
// Named barriers of some warps of a block, `threads` in all.
TILEWRIGHT_DEVICE void named_sync(int barrier, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }
TILEWRIGHT_DEVICE bool named_any(int barrier, int threads, bool mine) {  // named_sync(), and whether anyone said yes
    int any;
    asm volatile("{\n.reg .pred mine, any;\nsetp.ne.s32 mine, %3, 0;\nbarrier.cta.red.or.pred any, %1, %2, mine;\nselp.s32 %0, 1, 0, any;\n}" : "=r"(any) : "r"(barrier), "r"(threads), "r"((int)mine) : "memory");
    return any != 0;
}
TILEWRIGHT_DEVICE void named_arrive(int barrier, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }

// The copy engine, by the maps of sm90_arguments.h: all panels of a tile at once, or one.
TILEWRIGHT_DEVICE void copy_panels(unsigned to, const TensorMap* map, unsigned barrier, int row, int head, int batch) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %3, %5, %6}], [%2];" ::"r"(to), "l"(map), "r"(barrier), "r"(0), "r"(row), "r"(head), "r"(batch)
        : "memory");
}
TILEWRIGHT_DEVICE void copy_panel(unsigned to, const TensorMap* map, unsigned barrier, int column, int row, int head, int batch) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to), "l"(map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(batch)
        : "memory");
}
// Between what threads write to shared memory and what the matrix unit reads of it next.
TILEWRIGHT_DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

template <int registers>
TILEWRIGHT_DEVICE void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
TILEWRIGHT_DEVICE void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace ptx

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

// Of a warp that is done with a buffer.
TILEWRIGHT_DEVICE void release(unsigned barrier) {
    if (threadIdx.x % 32 == 0) ptx::barrier_arrive(barrier);
}

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
