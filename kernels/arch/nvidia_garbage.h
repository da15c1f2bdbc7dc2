// Values that are NaN or infinite must not reach the rows that do not see them, but 0 * NaN is NaN: in tiles of keys that some
// rows see in part they are set to zero in shared memory, and put back afterwards for the rows that do see them.
#pragma once
#include "nvidia.h"

namespace tilewright::kernel {
namespace nvidia {

TILEWRIGHT_DEVICE bool is_finite(float x) { return x - x == 0; }
TILEWRIGHT_DEVICE bf16 rounded(bf16, float x) { return {(unsigned short)(ptx::pack(bf16(), x, x) & 0xffff)}; }
TILEWRIGHT_DEVICE fp16 rounded(fp16, float x) { return {(unsigned short)(ptx::pack(fp16(), x, x) & 0xffff)}; }
TILEWRIGHT_DEVICE fp32 rounded(fp32, float x) { return {x}; }

// Whether values of KV tile `kv` may be hidden from some row that multiplies them. Keys past the end are zeros already, unless
// another sequence begins there.
template <class Config>
constexpr bool hides_values = Config::mask != Mask::none || Config::bias || Config::packed;
template <class Config>
TILEWRIGHT_DEVICE bool hides(const Tile<Config>& tile, int kv) {
    return Config::bias || ((Config::mask != Mask::none || Config::packed) && tile.needs_mask(kv));
}

// One thread's part of `pieces` 16-byte pieces in shared memory, of which `address(i)` is the i-th: thread `rank` of
// `threads`. True if anything was not finite, and is zero now.
template <class Element, int pieces, int threads, class Address>
TILEWRIGHT_DEVICE bool clean(int rank, Address&& address) {
    unsigned sum = 0;
    _Pragma("unroll 4") for (int i = rank; i < pieces; i += threads) {
        uint4 x = ptx::load_shared4(address(i));
        sum = ptx::add_zeros(Element(), x.x, sum), sum = ptx::add_zeros(Element(), x.y, sum);
        sum = ptx::add_zeros(Element(), x.z, sum), sum = ptx::add_zeros(Element(), x.w, sum);
    }
    if ((sum & 0x7fff7fff) == 0) return false;
    constexpr unsigned low = sizeof(Element) == 2 ? 0xffff : ~0u;
    _Pragma("unroll 1") for (int i = rank; i < pieces; i += threads) {
        uint4 x = ptx::load_shared4(address(i));
        TILEWRIGHT_UNROLL for (int w = 0; w < 4; ++w) {
            unsigned& word = (&x.x)[w];
            unsigned zeros = ptx::add_zeros(Element(), word, 0) & 0x7fff7fff;
            word &= (zeros & low ? 0 : low) | (zeros & ~low ? 0 : ~low);
        }
        ptx::store_shared(address(i), x);
    }
    return true;
}

// Of one warp, after it has stored `rows` rows from `first_row` on: what is not finite and seen is the result of its column.
template <class Config>
TILEWRIGHT_DEVICE void reveal(const ForwardParameters& p, const Tile<Config>& tile, int first_row, int rows) {
    using Element = typename Config::Element;
    __syncwarp();
    for (int row = first_row; row < first_row + rows && tile.inside(row); ++row) {
        int query = tile.query(row), head = tile.head_of(row), begin = tile.visible_begin(row), end = tile.visible_end(row);
        const Element* value = row_of((const Element*)p.value, p.value_strides, tile.key_batch(), tile.kv_head, 0);
        const Element* bias = Config::bias ? row_of((const Element*)p.bias, p.bias_strides, tile.batch, head, query) : nullptr;
        Element* out = row_of((Element*)p.out, p.out_strides, tile.batch, head, query);
        for (int column = threadIdx.x % 32; column < Config::head_dim_v; column += 32) {
            float sum = 0;
            for (int kv = tile.kv_begin; kv < tile.kv_end; ++kv) {
                if (!hides(tile, kv)) continue;
                int last = min_of(end, (kv + 1) * Config::block_kv);
                _Pragma("unroll 1") for (int key = max_of(begin, kv * Config::block_kv); key < last; ++key) {
                    float x = to_float(value[key * p.value_strides.row + column]);
                    bool hidden = Config::bias && to_float(bias[key * p.bias_column_stride]) == -infinity;
                    if (!is_finite(x) && !hidden) sum += x;
                }
            }
            if (!is_finite(sum)) out[column] = rounded(Element(), to_float(out[column]) + sum);
        }
    }
}

}  // namespace nvidia
}  // namespace tilewright::kernel
