// NVIDIA sm_90a, backward: dQ as sums in memory. The pass over keys adds to them by the copy engine, the epilogue reads them.
#pragma once
#include "nvidia.h"

namespace tilewright::kernel {
namespace ptx {

// Adds floats in shared memory to those in memory; what this thread has asked for is then a group of its own.
TILEWRIGHT_DEVICE void add_floats(float* to, unsigned from, int bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
TILEWRIGHT_DEVICE void store_floats(float* to, unsigned from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
TILEWRIGHT_DEVICE void wait_until_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
TILEWRIGHT_DEVICE void wait_until_added() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// A number in memory that says whose turn it is; what was done before a turn is given is seen by who takes it, the copy engine included.
TILEWRIGHT_DEVICE void await_turn(const unsigned* turn, unsigned mine) {
    unsigned now;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory");
    while (now != mine);
    asm volatile("fence.proxy.async.global;" ::: "memory");
}
TILEWRIGHT_DEVICE void give_turn(unsigned* turn) {
    asm volatile("fence.proxy.async.global;\nred.release.gpu.global.add.u32 [%0], 1;" ::"l"(turn) : "memory");
}
// 8x8 blocks of 16-bit elements, each turned; a lane gives the address of one row.
TILEWRIGHT_DEVICE void store_matrices_turned(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

}  // namespace ptx

namespace hopper {

// A tile of block_q queries with `columns` sums each. Warpgroups compute parts 64 high: of the queries, or of the columns. Each warp's
// 16 queries lie as its lanes hold them, four floats of a lane at a time, so that neither writing nor adding needs an order of its own.
template <int block_q, int columns, int workers>
struct QuerySums {
    static constexpr bool by_query = block_q == 64 * workers;
    static_assert(by_query || block_q == 64);
    static constexpr int width = by_query ? columns : columns / workers, warp_floats = 16 * width;
    static_assert(width % 16 == 0);

    // Of 16 columns from a multiple of 16 on: 16 floats from here on, in the order 0 1 8 9 2 3 10 11 and so on.
    static TILEWRIGHT_DEVICE int place(int query, int column) {
        int worker = by_query ? query / 64 : column / width, row = query % 64;
        return (worker * 4 + row / 16) * warp_floats + ((column % width / 16 * 2 + row % 16 / 8) * 32 + row % 8 * 4) * 4;
    }
    // One warp's part into shared memory, as place() says.
    template <class Part>
    static TILEWRIGHT_DEVICE void put(unsigned to, const Part& part) {
        TILEWRIGHT_UNROLL for (int i = 0; i < width / 8; ++i) {
            const float* d = &part.d[0][i / 2 * 8 + i % 2 * 2];
            ptx::store_shared(to + (i * 32 + (int)threadIdx.x % 32) * 16, uint4{__float_as_uint(d[0]), __float_as_uint(d[1]), __float_as_uint(d[4]), __float_as_uint(d[5])});
        }
    }
};

}  // namespace hopper
}  // namespace tilewright::kernel
