// AMD, backward: a wave for each query, and one for each head's sink.
#pragma once
#include "../backward_tile.h"
#include "amd.h"

namespace tilewright::kernel {

template <class Config_, int wave>
struct AmdBackwardRows : amd::Lane {
    using Config = Config_;
    using Element = typename Config::Element;
    static constexpr int threads = amd_backward_rows_threads, columns_at_once = wave, shared_bytes = 16;

    struct Arguments {
        BackwardParametersOf<Config> parameters;
    };

    // A block's tile is a block of padded queries of one head.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_query(const Arguments& arguments, Body&& body) {
        const PlainBackwardParameters& p = arguments.parameters;
        int index = __builtin_amdgcn_workgroup_id_x(), blocks = p.padded_queries / backward_query_block, head = index / blocks, first = index % blocks * backward_query_block;
        for (int i = amd::thread() / wave; i < backward_query_block; i += threads / wave) body(head / p.forward.heads_q, head % p.forward.heads_q, first + i);
    }
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_head(const Arguments&, Body&& body) {
        if (amd::thread() < wave) body((int)__builtin_amdgcn_workgroup_id_x());
    }
    static TILEWRIGHT_DEVICE int lane() { return amd::thread() % wave; }
    static TILEWRIGHT_DEVICE bool leads_row() { return lane() == 0; }
    static TILEWRIGHT_DEVICE float values_at(const TILEWRIGHT_GLOBAL float* from) { return from[lane()]; }
    static TILEWRIGHT_DEVICE float sum_of_sharers(float x) { return x; }  // dot() has summed up
    static TILEWRIGHT_DEVICE void store_statistics(const PlainBackwardParameters& p, long long row, float log_sum, float delta) { p.log_sums[row] = log_sum, p.deltas[row] = delta; }
    static TILEWRIGHT_DEVICE float row_sum(float x) {
        TILEWRIGHT_UNROLL for (int other = wave / 2; other > 0; other /= 2)
            x += __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute((lane() ^ other) * 4, __builtin_bit_cast(int, x)));
        return x;
    }
    template <int count>
    static TILEWRIGHT_DEVICE float dot(const Element* a, const Element* b) {
        float sum = 0;
        TILEWRIGHT_UNROLL for (int c = lane(); c < count; c += wave) sum += amd::float_at(a + c) * amd::float_at(b + c);
        return row_sum(sum);
    }
};

}  // namespace tilewright::kernel
