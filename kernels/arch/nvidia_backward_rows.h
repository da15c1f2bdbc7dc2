// NVIDIA, backward: some lanes for each query, and a warp for each head's sink.
#pragma once
#include "sm90_query_sums.h"
#include "sm90_statistics.h"

namespace tilewright::kernel {

template <class Config_>
struct NvidiaBackwardRows : nvidia::Common {
    using Config = Config_;
    using Element = typename Config::Element;
    static constexpr int threads = nvidia_backward_rows_threads, columns_at_once = 32;
    // Elements that a lane takes at once, and neighbouring lanes that share a query.
    static constexpr int piece = Config::aligned && sizeof(Element) == 2 ? 8 : 1;
    static constexpr int lanes = Config::head_dim_v <= 8 * piece ? 8 : Config::head_dim_v <= 16 * piece ? 16 : 32;

    struct Arguments {
        BackwardParametersOf<Config> parameters;
    };

    // A block's tile is a block of padded queries of one head.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_query(const Arguments& arguments, Body&& body) {
        const PlainBackwardParameters& p = arguments.parameters;
        if constexpr (Config::persistent) clear_counts(p);
        int blocks = p.padded_queries / backward_query_block, head = blockIdx.x / blocks, first = blockIdx.x % blocks * backward_query_block;
        for (int i = threadIdx.x / lanes; i < backward_query_block; i += threads / lanes) body(head / p.forward.heads_q, head % p.forward.heads_q, first + i);
    }
    // Of a pass over keys that works row by row beside.
    static TILEWRIGHT_DEVICE void clear_counts(const PlainBackwardParameters& p) {
        if (blockIdx.x == 0)
            for (int i = threadIdx.x; i < backward_counts(p.forward.batch * p.forward.heads_kv); i += threads) p.counts[i] = 0;
    }
    // Every lane of the warp gets the sum of it, and may store it.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_head(const Arguments&, Body&& body) {
        if (threadIdx.x < 32) body((int)blockIdx.x);
    }
    static TILEWRIGHT_DEVICE bool leads_row() { return threadIdx.x % lanes == 0; }
    static TILEWRIGHT_DEVICE float values_at(const float* from) { return from[threadIdx.x % 32]; }
    template <int sharers>
    static TILEWRIGHT_DEVICE float sum_of(float x) {
        TILEWRIGHT_UNROLL for (int other = sharers / 2; other > 0; other /= 2) x += __shfl_xor_sync(~0u, x, other);
        return x;
    }
    static TILEWRIGHT_DEVICE float row_sum(float x) { return sum_of<32>(x); }
    static TILEWRIGHT_DEVICE float sum_of_sharers(float x) { return sum_of<lanes>(x); }
    static TILEWRIGHT_DEVICE void store_statistics(const PlainBackwardParameters& p, long long row, float log_sum, float delta) { hopper::store_statistics<Config>(p, row, log_sum, delta); }
    static TILEWRIGHT_DEVICE void load(Element (&x)[8], const Element* from) { *(uint4*)x = *(const uint4*)from; }
    static TILEWRIGHT_DEVICE void load(Element (&x)[1], const Element* from) { x[0] = *from; }
    template <int count>  // this lane's part of it
    static TILEWRIGHT_DEVICE float dot(const Element* a, const Element* b) {
        float sum = 0;
        TILEWRIGHT_UNROLL for (int c = threadIdx.x % lanes * piece; c < count; c += lanes * piece) {
            alignas(16) Element x[piece], y[piece];
            load(x, a + c), load(y, b + c);
            TILEWRIGHT_UNROLL for (int i = 0; i < piece; ++i) sum += kernel::to_float(x[i]) * kernel::to_float(y[i]);
        }
        return sum;
    }

    // The sums of dQ, of one query; `row` counts the padded queries of all heads.
    static constexpr int sum_columns = backward_sum_columns(Config::head_dim);
    static TILEWRIGHT_DEVICE void clear_query_sums(const PlainBackwardParameters& p, long long row) {
        if constexpr (Config::dq == 2) {  // the first stores, and adds to nothing
            constexpr int queries = Config::block_q / Config::workers;  // for each counter: a tile of them has one for each worker
            if (row % queries == 0 && leads_row()) p.turns[row / queries] = 0;
        } else {
            TILEWRIGHT_UNROLL for (int c = threadIdx.x % lanes * 4; c < sum_columns; c += lanes * 4) *(float4*)(p.query_sums + row * sum_columns + c) = float4{};
        }
    }
    static TILEWRIGHT_DEVICE void store_query_sums(const PlainBackwardParameters& p, long long row, Element* to) {
        using Sums = hopper::QuerySums<Config::block_q, sum_columns, Config::workers>;
        bool nobody = Config::dq == 2 && p.turns[row / Config::block_q * Config::workers] == 0;  // has stored what is there
        const float* tile = p.query_sums + row / Config::block_q * Config::block_q * sum_columns;
        TILEWRIGHT_UNROLL for (int c = threadIdx.x % lanes * 8; c < Config::head_dim; c += lanes * 8) {
            const float4* from = (const float4*)(tile + Sums::place(row % Config::block_q, c / 16 * 16));
            unsigned x[4];
            TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) {
                float4 two = from[Sums::four(int(row % 8), i)];  // pairs of columns, 8 apart
                bool upper = c % 16 != 0;
                float low = upper ? two.z : two.x, high = upper ? two.w : two.y;
                x[i] = nobody ? 0 : ptx::pack(Element(), low * p.forward.scale, high * p.forward.scale);
            }
            ptx::store_global(to + c, x);
        }
    }
};

}  // namespace tilewright::kernel
