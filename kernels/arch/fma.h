// NVIDIA sm_80 and later: products of float operands in plain float arithmetic, by the same lanes and rows as mma_sync.h.
#pragma once
#include "mma_sync.h"

namespace tilewright::kernel {
namespace nvidia {

// Scores: a lane's columns are four apart, so that the keys which four lanes read at once lie in different banks.
// Output (`grouped`): they come in fours, one 16-byte piece of a row of values.
template <int N, int strips, bool grouped, int width = N, bool aligned = true>
struct FloatAccumulator {
    static constexpr int rows = 2 * strips, columns = N / 4;
    float d[rows][columns];

    TILEWRIGHT_DEVICE float& at(int r, int c) { return d[r][c]; }
    static TILEWRIGHT_DEVICE int row(int r) { return (int)threadIdx.x / 32 * (16 * strips) + r * 8 + (int)threadIdx.x % 32 / 4; }
    static TILEWRIGHT_DEVICE int column(int c) {
        int lane = threadIdx.x % 4;
        return grouped ? c / 4 * 16 + lane * 4 + c % 4 : c * 4 + lane;
    }
    static TILEWRIGHT_DEVICE int columns_within(int span) { return max_of(span + 3, 0) / 4; }  // of scores
    static TILEWRIGHT_DEVICE bool leads_row() { return threadIdx.x % 4 == 0; }
    TILEWRIGHT_DEVICE void clear() {
        TILEWRIGHT_UNROLL for (int r = 0; r < rows; ++r) TILEWRIGHT_UNROLL for (int c = 0; c < columns; ++c) d[r][c] = 0;
    }
    TILEWRIGHT_DEVICE void store_row(int r, float factor, fp32* to, bool inside) {
        TILEWRIGHT_UNROLL for (int c = 0; c < columns; c += 4) {
            float4 x = {d[r][c] * factor, d[r][c + 1] * factor, d[r][c + 2] * factor, d[r][c + 3] * factor};
            int first = column(c);
            if (aligned) {
                if (inside && first < width) *(float4*)(to + first) = x;
            } else {
                TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i)
                    if (inside && first + i < width) to[first + i].value = (&x.x)[i];
            }
        }
    }
};

template <class Scores>
struct Unrounded {  // floats are their own type
    Scores p;
    TILEWRIGHT_DEVICE void assign(const Scores& scores) { p = scores; }
};

}  // namespace nvidia

template <class Config>
struct WarpProducts<Config, fp32> : nvidia::Common {
    static constexpr int strips = Config::block_q / Config::workers / 16, block_kv = Config::block_kv;
    static constexpr int key_pieces = sm80_row_pieces(Config::head_dim, 4), value_pieces = sm80_row_pieces(Config::head_dim_v, 4);
    static_assert(Config::block_q % (16 * Config::workers) == 0 && block_kv % 16 == 0, "a warp multiplies 16 rows by 16 keys at a time");

    using Scores = nvidia::FloatAccumulator<block_kv, strips, false>;
    using Output = nvidia::FloatAccumulator<round_up(Config::head_dim_v, 16), strips, true, Config::head_dim_v, Config::aligned>;
    using Rounded = nvidia::Unrounded<Scores>;

    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, unsigned query, unsigned keys) {
        scores.clear();
        _Pragma("unroll 1") for (int piece = 0; piece < key_pieces; ++piece) {
            float4 q[Scores::rows], k;
            TILEWRIGHT_UNROLL for (int r = 0; r < Scores::rows; ++r) ptx::load_shared(q[r], query + nvidia::place<key_pieces>(Scores::row(r), piece));
            TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c) {
                ptx::load_shared(k, keys + nvidia::place<key_pieces>(Scores::column(c), piece));
                TILEWRIGHT_UNROLL for (int r = 0; r < Scores::rows; ++r) {
                    float& sum = scores.at(r, c);
                    sum += q[r].x * k.x, sum += q[r].y * k.y, sum += q[r].z * k.z, sum += q[r].w * k.w;
                }
            }
        }
    }
    static TILEWRIGHT_DEVICE void start_output(Output& output, const Rounded& rounded, unsigned values) {
        int lane = threadIdx.x % 32;
        TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c) _Pragma("unroll 1") for (int owner = 0; owner < 4; ++owner) {
            float p[Scores::rows];  // of one key, from the lane of each row that holds it
            TILEWRIGHT_UNROLL for (int r = 0; r < Scores::rows; ++r) p[r] = __shfl_sync(~0u, rounded.p.d[r][c], (lane & ~3) | owner);
            TILEWRIGHT_UNROLL for (int group = 0; group < Output::columns / 4; ++group) {
                float4 v;
                ptx::load_shared(v, values + nvidia::place<value_pieces>(c * 4 + owner, group * 4 + lane % 4));
                TILEWRIGHT_UNROLL for (int r = 0; r < Scores::rows; ++r) {
                    output.at(r, 4 * group) += p[r] * v.x, output.at(r, 4 * group + 1) += p[r] * v.y;
                    output.at(r, 4 * group + 2) += p[r] * v.z, output.at(r, 4 * group + 3) += p[r] * v.w;
                }
            }
        }
    }
    template <int pending, class Fragment>
    static TILEWRIGHT_DEVICE void finish(Fragment&) {}  // the products are synchronous
};

}  // namespace tilewright::kernel
