// AMD CDNA (gfx90a, gfx942): MFMA by waves of 64.
#pragma once
#include "amd_forward.h"

namespace tilewright::kernel {
namespace amd {

struct Wave64 {
    template <int mask>
    static TILEWRIGHT_DEVICE float exchange(float x) {
        int bits = __builtin_bit_cast(int, x);
        if constexpr (mask < 32) return __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(bits, mask << 10 | 31));
        else return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute((thread() % 64 ^ mask) * 4, bits));
    }
    static TILEWRIGHT_DEVICE bool any(bool x) { return __builtin_amdgcn_ballot_w64(x) != 0; }
    static TILEWRIGHT_DEVICE short8 spread(short8 x) { return x; }
};

struct Mfma16 : Wave64 {
    using Layout = layouts::Mfma16x16x16;
    using Operand = short8;
    using Vector = float4;
    static constexpr int products = 2;
    static TILEWRIGHT_DEVICE float4 multiply(bf16, short8 a, short8 b, float4 c) {
        c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a.lo, b.lo, c, 0, 0, 0);
        return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a.hi, b.hi, c, 0, 0, 0);
    }
    static TILEWRIGHT_DEVICE float4 multiply(fp16, short8 a, short8 b, float4 c) {
        half8 x = __builtin_bit_cast(half8, a), y = __builtin_bit_cast(half8, b);
        c = __builtin_amdgcn_mfma_f32_16x16x16f16(x.lo, y.lo, c, 0, 0, 0);
        return __builtin_amdgcn_mfma_f32_16x16x16f16(x.hi, y.hi, c, 0, 0, 0);
    }
};

struct Mfma32 : Wave64 {
    using Layout = layouts::Mfma32x32x8;
    using Operand = short8;
    using Vector = float16;
    static constexpr int products = 2;
    static TILEWRIGHT_DEVICE float16 multiply(bf16, short8 a, short8 b, float16 c) {
        c = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a.lo, b.lo, c, 0, 0, 0);
        return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a.hi, b.hi, c, 0, 0, 0);
    }
    static TILEWRIGHT_DEVICE float16 multiply(fp16, short8 a, short8 b, float16 c) {
        half8 x = __builtin_bit_cast(half8, a), y = __builtin_bit_cast(half8, b);
        c = __builtin_amdgcn_mfma_f32_32x32x8f16(x.lo, y.lo, c, 0, 0, 0);
        return __builtin_amdgcn_mfma_f32_32x32x8f16(x.hi, y.hi, c, 0, 0, 0);
    }
};

template <class Config>
constexpr bool uses_side_32 = Config::block_q / Config::workers % 32 == 0;  // as in resources_amd.h, which is asserted
template <class Config>
using MfmaOf = typename Choose<uses_side_32<Config>, Mfma32, Mfma16>::type;

// gfx90a's MFMA takes subnormal fp16 operands for zero, so a probability under 2^-14 would be in the row's sum and not in its
// output. Lifting all of them as far as 2^15, which rows that lag by `slack` can reach, leaves only those under 2^-(29 - slack)
// of the maximum.
template <class Element>
constexpr int lift(int) {
    return 0;
}
template <>
constexpr int lift<fp16>(int slack) {
    return slack < 15 ? 15 - slack : 0;
}

}  // namespace amd

template <class Config>
struct Cdna : amd::Forward<Config, amd::MfmaOf<Config>, AmdFamily::cdna> {
    static constexpr int probability_lift = amd::lift<typename Config::Element>(Config::slack);
};

}  // namespace tilewright::kernel
