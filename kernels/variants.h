// What may happen to a score between the product and the softmax: scale, softcap, bias, ALiBi. A config that uses none
// of them (`rescores` is false) pays nothing: the scale is then part of the exponent.
#pragma once
#include "tile/tile.h"

namespace tilewright::kernel {

// `rescaled`: the scale is not positive, so maxima of raw scores are not maxima of scaled ones.
template <class Config>
constexpr bool rescores = Config::softcap || Config::bias || Config::alibi || Config::rescaled;

// tanh to float accuracy. Near zero 1 - 2 / (e^2x + 1) cancels, so an odd polynomial (minimax on |x| < 0.625) serves there.
template <class Arch, class Value>
TILEWRIGHT_DEVICE Value tanh(Value x) {
    Value magnitude = Arch::max(x, -x), square = x * x;
    Value tail = 1.0f - 2.0f / (Arch::exp2(Arch::min(magnitude, Arch::broadcast(12.0f)) * (2 * log2_of_e)) + 1.0f);
    Value near = ((((-5.70498872745e-3f * square + 2.06390887954e-2f) * square - 5.37397155531e-2f) * square + 1.33314422036e-1f) * square -
                  3.33332819422e-1f) * square * x + x;
    Value far = Arch::select(x < 0.0f, -tail, tail);
    return Arch::select(magnitude < 0.625f, near, Arch::select(x == x, far, x));
}

// Scores of the keys from `first_key` on, in natural units. Elements that lie outside are computed from clamped
// positions and hidden afterwards.
template <class Arch, class Fragment>
TILEWRIGHT_DEVICE void rescore(Fragment& scores, const ForwardParameters& p, const Tile<typename Arch::Config>& tile, int first_key) {
    using Config = typename Arch::Config;
    using Element = typename Config::Element;
    using Value = typename Arch::Value;
    TILEWRIGHT_UNROLL for (int r = 0; r < Fragment::rows; ++r) {
        int row = min_of(scores.row(r), tile.rows() - 1), query = tile.query(row), head = tile.head_of(row);
        const Element* bias = Config::bias ? row_of((const Element*)p.bias, p.bias_strides, tile.batch, head, query) : nullptr;
        float slope = Config::alibi ? p.slope[head] : 0;
        TILEWRIGHT_UNROLL for (int c = 0; c < Fragment::columns; ++c) {
            auto key = scores.column(c) + first_key;
            Value score = scores.at(r, c) * p.scale;
            if constexpr (Config::softcap) score = tanh<Arch>(Value(score * (1.0f / p.softcap))) * p.softcap;
            if constexpr (Config::bias) {
                Value added = Arch::gather(bias, p.bias_column_stride, key, tile.seq_kv);
                score = Arch::select(added == -infinity, added, score + added);  // -infinity hides even NaN
            }
            if constexpr (Config::alibi) score -= Arch::to_float(Arch::distance(key, query + tile.diagonal)) * slope;
            scores.at(r, c) = score;
        }
    }
}

}  // namespace tilewright::kernel
