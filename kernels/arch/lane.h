// What all GPUs share: a lane's Value of one row and column is a single float.
#pragma once
#include "../tile/tile.h"

namespace tilewright::kernel {

TILEWRIGHT_DEVICE float to_float(fp32 x) { return x.value; }
TILEWRIGHT_DEVICE float to_float(bf16 x) { return __builtin_bit_cast(float, (unsigned)x.bits << 16); }
// Half precision without a half type: move the exponent by a multiplication, which also normalises subnormals.
TILEWRIGHT_DEVICE float to_float(fp16 x) {
    unsigned magnitude = (x.bits & 0x7fffu) << 13, sign = (x.bits & 0x8000u) << 16;
    float value = __builtin_bit_cast(float, magnitude) * 0x1p112f;
    if (magnitude >= 0x0f800000u) value = __builtin_bit_cast(float, magnitude | 0x7f800000u);  // infinity and NaN
    return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, value) | sign);
}

struct FloatLane {
    using Value = float;
    static constexpr bool stores_through_query = false;  // outputs go to memory by way of their queries' place
    static constexpr bool halves = false;                // half a KV tile may be computed alone
    static constexpr bool votes_by_lane = false;  // whether maxima are to be moved follows from each lane's own
    static constexpr int probability_lift = 0;  // log2 of a factor on all probabilities, for products that flush small ones
    static TILEWRIGHT_DEVICE float broadcast(float x) { return x; }
    static TILEWRIGHT_DEVICE float reciprocal(float x) { return 1.0f / x; }
    static TILEWRIGHT_DEVICE float min(float a, float b) { return b < a ? b : a; }
    static TILEWRIGHT_DEVICE float select(bool first, float a, float b) { return first ? a : b; }
    static TILEWRIGHT_DEVICE float to_float(int x) { return (float)x; }
    static TILEWRIGHT_DEVICE int distance(int a, int b) { return a < b ? b - a : a - b; }
    template <bool has_begin, class Fragment>
    static TILEWRIGHT_DEVICE void hide_row(Fragment& scores, int r, int begin, int end) { hide_columns<FloatLane, has_begin>(scores, r, begin, end); }
    // Element `index` of a strided run of `count`; never reads past its end.
    template <class Element>
    static TILEWRIGHT_DEVICE float gather(const Element* from, long long stride, int index, int count) {
        return kernel::to_float(from[min_of(index, count - 1) * stride]);
    }
    // Stores to element `index` of a run of `count`, if it lies inside.
    static TILEWRIGHT_DEVICE void scatter(float* to, int index, int count, float x) {
        if (index < count) to[index] = x;
    }
};

}  // namespace tilewright::kernel
