// NVIDIA sm_80 and later: products by warps, of 16-bit operands in shared memory.
#pragma once
#include "nvidia.h"

namespace tilewright::kernel {
// Both products of a tile, for 16-bit elements. Tiles in shared memory are of rows of 16-byte pieces.
template <class Config, class Element = typename Config::Element>
struct WarpProducts : nvidia::Common {
    static constexpr int strips = Config::block_q / Config::workers / 16, block_kv = Config::block_kv;
    static constexpr int key_pieces = sm80_row_pieces(Config::head_dim, 2), value_pieces = sm80_row_pieces(Config::head_dim_v, 2);
    static_assert(Config::block_q % (16 * Config::workers) == 0 && block_kv % 16 == 0, "a warp multiplies 16 rows by 16 keys at a time");

    using Scores = nvidia::Accumulator<Element, layouts::MmaSync16x8x16, block_kv, strips, 0>;
    using Output = nvidia::Accumulator<Element, layouts::MmaSync16x8x16, round_up(Config::head_dim_v, 16), strips, 0, Config::head_dim_v, Config::aligned>;
    using Rounded = nvidia::Rounded<Scores>;

    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, unsigned query, unsigned keys) {
        int lane = threadIdx.x % 32, first_row = (int)threadIdx.x / 32 * strips * 16;
        scores.clear();
        TILEWRIGHT_UNROLL for (int k = 0; k < key_pieces / 2; ++k) {
            unsigned a[strips][4], b[4];
            TILEWRIGHT_UNROLL for (int s = 0; s < strips; ++s)
                ptx::load_matrices(a[s], query + nvidia::place<key_pieces>(first_row + s * 16 + lane % 16, 2 * k + lane / 16));
            TILEWRIGHT_UNROLL for (int t = 0; t < block_kv / 16; ++t) {
                ptx::load_matrices(b, keys + nvidia::place<key_pieces>(t * 16 + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
                TILEWRIGHT_UNROLL for (int s = 0; s < strips; ++s) {
                    ptx::mma(Element(), scores.d[s] + 8 * t, a[s], b);
                    ptx::mma(Element(), scores.d[s] + 8 * t + 4, a[s], b + 2);
                }
            }
        }
    }
    static TILEWRIGHT_DEVICE void start_output(Output& output, const Rounded& p, unsigned values) {
        int lane = threadIdx.x % 32;
        TILEWRIGHT_UNROLL for (int k = 0; k < block_kv / 16; ++k) TILEWRIGHT_UNROLL for (int t = 0; t < value_pieces / 2; ++t) {
            unsigned b[4];
            ptx::load_matrices_turned(b, values + nvidia::place<value_pieces>(k * 16 + lane % 16, 2 * t + lane / 16));
            TILEWRIGHT_UNROLL for (int s = 0; s < strips; ++s) {
                ptx::mma(Element(), output.d[s] + 8 * t, p.a[s] + 4 * k, b);
                ptx::mma(Element(), output.d[s] + 8 * t + 4, p.a[s] + 4 * k, b + 2);
            }
        }
    }
    template <int pending, class Fragment>
    static TILEWRIGHT_DEVICE void finish(Fragment&) {}  // the products are synchronous
};

}  // namespace tilewright::kernel
