// PTX of sm_90a: barriers in shared memory, the copy engine, register reallocation, products by warpgroups. An instruction of wgmma has its size
// in its name: the generated prelude has those (backends/nvidia/nvidia_text.cpp).
#pragma once
#include "ptx.h"
#include "sm90_arguments.h"

namespace tilewright::kernel::ptx {

TILEWRIGHT_DEVICE void barrier_init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
TILEWRIGHT_DEVICE void barrier_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
TILEWRIGHT_DEVICE void barrier_arrive(unsigned barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
TILEWRIGHT_DEVICE void barrier_arrive_if(bool now, unsigned barrier) {  // without a branch
    asm volatile("{\n.reg .pred now;\nsetp.ne.s32 now, %1, 0;\n@now mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(barrier), "r"((int)now) : "memory");
}
// One lane of a warp whose lanes all come here. Who it is takes no register.
TILEWRIGHT_DEVICE void barrier_arrive_once_if(bool now, unsigned barrier) {
    asm volatile("{\n.reg .pred now, one;\nsetp.ne.s32 now, %1, 0;\nelect.sync _|one, 0xffffffff;\nand.pred now, now, one;\n@now mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(barrier), "r"((int)now) : "memory");
}
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
// Between what threads write to memory and what the copy engine does there.
TILEWRIGHT_DEVICE void fence_async_memory() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

template <int registers>
TILEWRIGHT_DEVICE void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
TILEWRIGHT_DEVICE void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

TILEWRIGHT_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TILEWRIGHT_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending>
TILEWRIGHT_DEVICE void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// The copies above for what is read once: it need not stay in the cache.
TILEWRIGHT_DEVICE void copy_panels_once(unsigned to, const TensorMap* map, unsigned barrier, int row, int head, int batch) {
    asm volatile(
        "{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1, {%3, %4, %3, %5, %6}], [%2], policy;\n}" ::"r"(to), "l"(map), "r"(barrier), "r"(0), "r"(row), "r"(head), "r"(batch)
        : "memory");
}
TILEWRIGHT_DEVICE void copy_panel_once(unsigned to, const TensorMap* map, unsigned barrier, int column, int row, int head, int batch) {
    asm volatile(
        "{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1, {%3, %4, %5, %6}], [%2], policy;\n}" ::"r"(to), "l"(map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(batch)
        : "memory");
}
TILEWRIGHT_DEVICE void fetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }
// The same boxes, into the second level cache.
TILEWRIGHT_DEVICE void ask_for_panels(const TensorMap* map, int row, int head, int batch) {
    asm volatile("cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0, {%1, %2, %1, %3, %4}];" ::"l"(map), "r"(0), "r"(row), "r"(head), "r"(batch) : "memory");
}
TILEWRIGHT_DEVICE void ask_for_panel(const TensorMap* map, int column, int row, int head, int batch) {
    asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(map), "r"(column), "r"(row), "r"(head), "r"(batch) : "memory");
}
// Programmatic dependent launch: wait for all that earlier kernels write; let the next kernel's blocks start.
TILEWRIGHT_DEVICE void wait_for_earlier_kernels() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
TILEWRIGHT_DEVICE void start_later_kernels() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

TILEWRIGHT_DEVICE void copy_bytes(unsigned to, const void* from, int bytes, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// Adds floats in shared memory to those in memory; what this thread has asked for is then a group of its own.
TILEWRIGHT_DEVICE void add_floats(float* to, unsigned from, int bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
TILEWRIGHT_DEVICE void store_floats(float* to, unsigned from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
// Of registers, 16 bytes a lane.
TILEWRIGHT_DEVICE void add_four(float* to, float a, float b, float c, float d) {
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
TILEWRIGHT_DEVICE void wait_until_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
TILEWRIGHT_DEVICE void wait_until_added() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// A number in memory that says whose turn it is; what was done before a turn is given is seen by who takes it, the copy engine included.
TILEWRIGHT_DEVICE void await_turn(const unsigned* turn, unsigned mine) {
    unsigned now;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory");
    while (now != mine);
    fence_async_memory();
}
// The same of what may take long.
TILEWRIGHT_DEVICE void await_count(const unsigned* count, unsigned whole) {
    for (;;) {
        unsigned now;
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(count) : "memory");
        if (now == whole) break;
        asm volatile("nanosleep.u32 1000;");
    }
    fence_async_memory();
}
TILEWRIGHT_DEVICE void give_turn(unsigned* turn) {
    fence_async_memory();
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(turn) : "memory");
}
// 8x8 blocks of 16-bit elements, as a left operand holds them; lane i gives the address of row i % 8 of block i / 8.
TILEWRIGHT_DEVICE void store_matrices(unsigned to, const unsigned (&x)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
}
// The same, each turned.
TILEWRIGHT_DEVICE void store_matrices_turned(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

TILEWRIGHT_DEVICE float min_nan(float a, float b) {
    float least;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
    return least;
}
// What follows from x is computed where it is needed, and not kept in registers.
TILEWRIGHT_DEVICE void forget(unsigned& x) { asm volatile("" : "+r"(x)); }

}  // namespace tilewright::kernel::ptx
