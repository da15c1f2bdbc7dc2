// NVIDIA sm_90a, backward: dQ as sums in memory. The pass over keys adds to them by the copy engine, the epilogue reads them.
#pragma once
#include "hopper_ptx.h"
#include "nvidia.h"

namespace tilewright::kernel {
namespace hopper {

// A tile of block_q queries with `columns` sums each. Warpgroups compute parts 64 high: of the queries, or of the columns. Each warp's
// 16 queries lie as its lanes hold them, four floats of a lane at a time, so that neither writing nor adding needs an order of its own.
template <int block_q, int columns, int workers>
struct QuerySums {
    static constexpr bool by_query = block_q == 64 * workers;
    static_assert(by_query || block_q == 64);
    static constexpr int width = by_query ? columns : columns / workers, warp_floats = 16 * width;
    static_assert(width % 16 == 0);

    // Of 16 columns from a multiple of 16 on: 16 floats from here on, as four lanes hold them: 0 1 8 9, 2 3 10 11 and so on. These fours change places from one
    // pair of rows to the next, so that whoever reads eight columns of each of eight rows meets no bank twice.
    static TILEWRIGHT_DEVICE int place(int query, int column) {
        int worker = by_query ? query / 64 : column / width, row = query % 64;
        return (worker * 4 + row / 16) * warp_floats + ((column % width / 16 * 2 + row % 16 / 8) * 32 + row % 8 * 4) * 4;
    }
    static TILEWRIGHT_DEVICE int four(int query, int which) { return which ^ query % 8 / 2; }
    static TILEWRIGHT_DEVICE int four_of_lane() { return (int)threadIdx.x % 32 ^ (int)threadIdx.x % 32 / 8; }  // of eight rows
    // Of any one.
    static TILEWRIGHT_DEVICE int place_of(int query, int column) { return place(query, column / 16 * 16) + four(query, column % 8 / 2) * 4 + column % 16 / 8 * 2 + column % 2; }
    // One warp's part into shared memory, as place() says; or, of `pieces` of 512 bytes, those from `begin` on.
    static constexpr int pieces = width / 8;
    template <int begin = 0, class Part>
    static TILEWRIGHT_DEVICE void put(unsigned to, const Part& part) {
        TILEWRIGHT_UNROLL for (int i = begin; i < pieces; ++i) {
            const float* d = &part.d[0][i / 2 * 8 + i % 2 * 2];
            ptx::store_shared(to + ((i - begin) * 32 + four_of_lane()) * 16, uint4{__float_as_uint(d[0]), __float_as_uint(d[1]), __float_as_uint(d[4]), __float_as_uint(d[5])});
        }
    }
    // Or to what is in memory, those before `end`.
    template <int end, class Part>
    static TILEWRIGHT_DEVICE void add(float* to, const Part& part) {
        unsigned four = four_of_lane();
        ptx::forget(four);  // added to the address each time, which keeps one register and not several
        TILEWRIGHT_UNROLL for (int i = 0; i < end; ++i) {
            const float* d = &part.d[0][i / 2 * 8 + i % 2 * 2];
            ptx::add_four(to + (i * 32 + four) * 4, d[0], d[1], d[4], d[5]);
        }
    }
};

// What has been drawn and done of the work row by row (PlainBackwardParameters::counts). Heads are KV heads, counted through all batches.
struct RowCounts {
    unsigned* at;
    int heads;
    TILEWRIGHT_DEVICE explicit RowCounts(const PlainBackwardParameters& p) : at(p.counts), heads(p.forward.batch * p.forward.heads_kv) {}
    TILEWRIGHT_DEVICE unsigned* to_prepare() const { return at; }
    TILEWRIGHT_DEVICE unsigned* to_round() const { return at + 1; }
    TILEWRIGHT_DEVICE unsigned* prepared(int head) const { return at + 2 + head; }       // blocks of queries whose statistics are there
    TILEWRIGHT_DEVICE unsigned* added(int head) const { return at + 2 + heads + head; }  // tiles of keys that have added all that they do
};

}  // namespace hopper
}  // namespace tilewright::kernel
