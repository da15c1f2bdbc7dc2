// NVIDIA sm_90a, backward: what products take off themselves. Log-sums and deltas belong to columns of S and dP, so that the matrix unit can begin with them:
// each is the sum of three numbers of eight bits, which a row of constants multiplies. No thread reads them, or subtracts them from an element.
#pragma once
#include "../backward_tile.h"
#include "hopper_ptx.h"
#include "nvidia_garbage.h"

namespace tilewright::kernel {
namespace hopper {

// A softcap bends what has no log-sum in it.
template <class Config>
constexpr bool splits_statistics = Config::dq != 0 && !Config::softcap;

// Eight bf16, of which three are parts. A log-sum and a delta may not share them: a row is multiplied as a whole, and 0 * NaN is NaN.
TILEWRIGHT_DEVICE uint4 parts_of(float x) {
    auto leading = [](float of) { return __float_as_uint(of) & 0xffff0000; };
    unsigned high = leading(x);
    float rest = nvidia::is_finite(x) ? x - __uint_as_float(high) : 0;
    unsigned middle = leading(rest);
    return {high >> 16 | middle, leading(rest - __uint_as_float(middle)) >> 16, 0, 0};
}
// What the passes read of the query in that row of all padded ones. Its log-sum, in units of log 2, is taken off before scores are scaled.
template <class Config>
TILEWRIGHT_DEVICE void store_statistics(const PlainBackwardParameters& p, long long row, float log_sum, float delta) {
    p.log_sums[row] = log_sum, p.deltas[row] = delta;
    if constexpr (splits_statistics<Config>) {
        constexpr float most = 3e38f;  // a score that is not finite would look like one of a key that is not
        float unscaled = log_sum / (divisible_scale(p.forward) * log2_of_e);
        ((uint4*)p.log_sum_parts)[row] = parts_of(unscaled > most ? most : unscaled < -most ? -most : unscaled);
        ((uint4*)p.delta_parts)[row] = parts_of(delta);
    }
}

// Right operands: eight rows side by side, not swizzled. They are read twice, as rows of sixteen.
constexpr int parts_bytes = 16;
TILEWRIGHT_DEVICE unsigned long long parts_descriptor(unsigned address) { return (unsigned long long)(8 * parts_bytes >> 4) << 32 | address >> 4; }
// The left operand: eight such rows, which stand for 64, of -1/2.
TILEWRIGHT_DEVICE unsigned long long factors_descriptor(unsigned address) { return address >> 4; }
TILEWRIGHT_DEVICE void store_factors(unsigned address) {  // of a warp
    ptx::store_shared(address + threadIdx.x % 32 * 4, (int)0xbf00bf00);
    ptx::fence_async();
}

}  // namespace hopper
}  // namespace tilewright::kernel
