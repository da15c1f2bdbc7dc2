// NVIDIA, backward: a warp for each query, and one for each head's sink.
#pragma once
#include "nvidia.h"

namespace tilewright::kernel {

template <class Config_>
struct NvidiaBackwardRows : nvidia::Common {
    using Config = Config_;
    using Element = typename Config::Element;
    static constexpr int threads = nvidia_backward_rows_threads, columns_at_once = 32;

    struct Arguments {
        BackwardParameters parameters;
    };

    // A block's tile is a block of padded queries of one head.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_query(const Arguments& arguments, Body&& body) {
        const BackwardParameters& p = arguments.parameters;
        int blocks = p.padded_queries / backward_query_block, head = blockIdx.x / blocks, first = blockIdx.x % blocks * backward_query_block;
        for (int i = threadIdx.x / 32; i < backward_query_block; i += threads / 32) body(head / p.forward.heads_q, head % p.forward.heads_q, first + i);
    }
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_head(const Arguments&, Body&& body) {
        if (threadIdx.x < 32) body((int)blockIdx.x);
    }
    static TILEWRIGHT_DEVICE bool leads_row() { return threadIdx.x % 32 == 0; }
    static TILEWRIGHT_DEVICE float values_at(const float* from) { return from[threadIdx.x % 32]; }
    static TILEWRIGHT_DEVICE float row_sum(float x) {
        TILEWRIGHT_UNROLL for (int other = 16; other > 0; other /= 2) x += __shfl_xor_sync(~0u, x, other);
        return x;
    }
    template <int count>
    static TILEWRIGHT_DEVICE float dot(const Element* a, const Element* b) {
        float sum = 0;
        TILEWRIGHT_UNROLL for (int c = threadIdx.x % 32; c < count; c += 32) sum += kernel::to_float(a[c]) * kernel::to_float(b[c]);
        return row_sum(sum);
    }
};

}  // namespace tilewright::kernel
