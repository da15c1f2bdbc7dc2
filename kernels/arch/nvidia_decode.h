// What NVIDIA's decode kernels share: sequences are looked through by whole warps, sums go through the second level cache, and values that
// are no numbers reach the rows that see them and no others.
#pragma once
#include "../decode_part.h"
#include "nvidia_rows.h"

namespace tilewright::kernel {

template <bool paged> struct RowsOfSequence {
    using type = DenseRows;
    static TILEWRIGHT_DEVICE DenseRows of(const DecodeParameters&, int) { return {}; }
};
template <> struct RowsOfSequence<true> {
    using type = PagedRows;
    static TILEWRIGHT_DEVICE PagedRows of(const DecodeParameters& decode, int sequence) { return {decode.block_table + sequence * decode.table_stride, decode.page_shift}; }
};

namespace nvidia {

// The lanes of a warp, 32 sequences at a time, of which each lane keeps the length of one of the first. Past the first level cache, which may
// hold what a kernel before has overwritten since.
class WarpLanes {
public:
    TILEWRIGHT_DEVICE WarpLanes(const int* lengths, int n) : lengths_(lengths), n_(n), kept_(lane() < n ? __ldcg(lengths + lane()) : 0) {}
    TILEWRIGHT_DEVICE int length(int i) const { return i < 32 ? __shfl_sync(~0u, kept_, i) : __ldcg(lengths_ + i); }
    template <class Count>
    TILEWRIGHT_DEVICE int sum(Count&& count) const {
        int sum = 0;
        for (int i = lane(); i < n_; i += 32) sum += count(i, length_of(i));
        return __reduce_add_sync(~0u, sum);
    }
    template <class Count>
    TILEWRIGHT_DEVICE int find(int position, Count&& count, int& before) const {
        before = 0;
        for (int first = 0;; first += 32) {
            int i = first + lane(), own = i < n_ ? count(i, length_of(i)) : 0, up_to = own;
            TILEWRIGHT_UNROLL for (int distance = 1; distance < 32; distance *= 2) {
                int lower = __shfl_up_sync(~0u, up_to, distance);
                if (lane() >= distance) up_to += lower;
            }
            if (unsigned beyond = __ballot_sync(~0u, before + up_to > position)) {
                int found = __ffs(beyond) - 1;
                before += __shfl_sync(~0u, up_to - own, found);
                return first + found;
            }
            before += __shfl_sync(~0u, up_to, 31);
        }
    }

private:
    static TILEWRIGHT_DEVICE int lane() { return threadIdx.x % 32; }
    TILEWRIGHT_DEVICE int length_of(int i) const { return i < 32 ? kept_ : __ldcg(lengths_ + i); }  // the lane's own i
    const int* lengths_;
    int n_, kept_;
};

// Waits for `threads` threads, the first of the block; true if the argument is for any of them.
template <int barrier, int threads>
TILEWRIGHT_DEVICE bool meet(bool x = false) { return ptx::meet<barrier, threads>(x); }

// Merging by the first `threads` threads of a block, four columns of a row each at a time.
template <class Config, int barrier, int threads>
struct Merging {
    using Element = typename Config::Element;
    static constexpr int lanes_of_block = threads, combined_columns = 4, loads_at_once = Config::head_dim_v > 128 ? 8 : 16;  // beside the output
    static TILEWRIGHT_DEVICE int lane_of_block() { return threadIdx.x; }
    // What the block wrote is seen by whoever arrives last; the counter, which wraps there, is zero again.
    static TILEWRIGHT_DEVICE bool arrives_last(unsigned* arrived, int parts) {
        meet<barrier, threads>();
        unsigned before = 0;
        if (threadIdx.x == 0) before = ptx::count_arrival(arrived, parts - 1);
        return meet<barrier, threads>(threadIdx.x == 0 && before == (unsigned)parts - 1);
    }
    // Past the first level cache, which does not see what other multiprocessors write.
    static TILEWRIGHT_DEVICE void load_fresh(float (&x)[2], const float* from) {
        float2 all = __ldcg((const float2*)from);
        x[0] = all.x, x[1] = all.y;
    }
    static TILEWRIGHT_DEVICE void load_fresh(float (&x)[4], const float* from) {
        float4 all = __ldcg((const float4*)from);
        x[0] = all.x, x[1] = all.y, x[2] = all.z, x[3] = all.w;
    }
    static TILEWRIGHT_DEVICE void store_sums(float* to, const float (&x)[4]) { *(float4*)to = {x[0], x[1], x[2], x[3]}; }
    static TILEWRIGHT_DEVICE void store_columns(Element* to, const float (&x)[4], float factor, int count) {
        if constexpr (Config::aligned && sizeof(Element) == 2) {  // there are four, and all of them exist
            *(uint2*)to = {ptx::pack(Element(), x[0] * factor, x[1] * factor), ptx::pack(Element(), x[2] * factor, x[3] * factor)};
        } else {
            TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i)
                if (i < count) to[i] = rounded(Element(), x[i] * factor);
        }
    }
};

// Values that were cleaned: what is not finite is added for the rows that see its key, of the keys from `first` to before `end`.
// `value_row(key)` is where a key's values are in memory.
template <class Config, class Output, class Row>
TILEWRIGHT_DEVICE void add_garbage(Output& output, const ForwardParameters& p, const Tile<Config>& tile, int first, int end, Row&& value_row) {
    using Element = typename Config::Element;
    _Pragma("unroll 1") for (int key = first; key < min_of(end, tile.seq_kv); ++key) {
        bool sees[Output::rows];
        TILEWRIGHT_UNROLL for (int r = 0; r < Output::rows; ++r) {
            int row = min_of(output.row(r), tile.rows() - 1);
            sees[r] = key >= tile.visible_begin(row) && key < tile.visible_end(row);
            if constexpr (Config::bias) {
                const Element* bias = row_of((const Element*)p.bias, p.bias_strides, tile.batch, tile.head_of(row), tile.query(row));
                sees[r] = sees[r] && to_float(bias[key * p.bias_column_stride]) != -infinity;
            }
        }
        const Element* values = value_row(key);
        TILEWRIGHT_UNROLL for (int c = 0; c < Output::columns; ++c) {
            float x = output.column(c) < Config::head_dim_v ? to_float(values[output.column(c)]) : 0;
            if (is_finite(x)) continue;
            TILEWRIGHT_UNROLL for (int r = 0; r < Output::rows; ++r)
                if (sees[r]) output.at(r, c) += x;
        }
    }
}

}  // namespace nvidia
}  // namespace tilewright::kernel
