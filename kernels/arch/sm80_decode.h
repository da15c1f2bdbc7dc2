// NVIDIA sm_80 and later, decoding: a block works on a unit of a line, part after part.
#pragma once
#include "../decode_part.h"
#include "sm80.h"

namespace tilewright::kernel {

// Rows of a sequence's keys or values, page by page.
struct PagedRows {
    static constexpr bool paged = true;
    const int* pages;  // of the sequence
    int shift;
    template <class Element>
    TILEWRIGHT_DEVICE const Element* at(const void* base, const Strides& strides, int kv_head, int key) const {
        return row_of((const Element*)base, strides, pages[key >> shift], kv_head, key & ((1 << shift) - 1));
    }
};

template <bool paged> struct DecodeRows { using type = DenseRows; };
template <> struct DecodeRows<true> { using type = PagedRows; };

template <class Config_>
struct Sm80Decode : Sm80<Config_> {
    using Config = Config_;
    using Element = typename Config::Element;
    using Base = Sm80<Config>;
    using KvRows = typename DecodeRows<Config::paged>::type;
    using Pipeline = typename Base::template PipelineOver<KvRows>;
    static_assert(!nvidia::hides_values<Config>, "what is hidden from some rows would have to be put back into partial results");

    struct Arguments {
        DecodeParameters parameters;
    };

    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_part(const Arguments& arguments, char* raw_shared, Body&& body) {
        const DecodeParameters& decode = arguments.parameters;
        unsigned shared = ptx::shared_address(raw_shared);
        int lines = line_count<Config>(decode.forward);
        Parts<Config> parts(decode, blockIdx.x % lines, blockIdx.x / lines);
        for (Part<Config> part; parts.next(part);) {
            KvRows rows{};
            if constexpr (Config::paged) rows = {decode.block_table + part.batch * decode.table_stride, decode.page_shift};
            Pipeline pipeline(decode.forward, shared, part, rows);
            body(part, pipeline);
            ptx::copies_wait<0>();
            __syncthreads();  // all warps are done with the part's tiles
        }
    }

    // Merging: every thread takes four columns of a row at a time.
    static constexpr int lanes_of_block = Base::threads, combined_columns = 4, loads_at_once = 8;
    static TILEWRIGHT_DEVICE int lane_of_block() { return threadIdx.x; }
    // What the block wrote is seen by whoever arrives last; the counter, which wraps there, is zero again.
    static TILEWRIGHT_DEVICE bool arrives_last(unsigned* arrived, int parts) {
        __threadfence();
        __syncthreads();
        bool last = threadIdx.x == 0 && atomicInc(arrived, parts - 1) == (unsigned)parts - 1;
        last = __syncthreads_or(last);
        if (last) __threadfence();
        return last;
    }
    // Past the first level cache, which does not see what other multiprocessors write.
    template <int n>
    static TILEWRIGHT_DEVICE void load_fresh(float (&x)[n], const float* from) {
        if constexpr (n == 4) {
            float4 all = __ldcg((const float4*)from);
            x[0] = all.x, x[1] = all.y, x[2] = all.z, x[3] = all.w;
        } else {
            TILEWRIGHT_UNROLL for (int i = 0; i < n; ++i) x[i] = __ldcg(from + i);
        }
    }
    template <int n>
    static TILEWRIGHT_DEVICE void store_columns(Element* to, const float (&x)[n], float factor, int count) {
        TILEWRIGHT_UNROLL for (int i = 0; i < n; ++i)
            if (i < count) to[i] = nvidia::rounded(Element(), x[i] * factor);
    }
};

}  // namespace tilewright::kernel
