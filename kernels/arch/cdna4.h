// AMD CDNA4 (gfx950): MFMA of twice the depth, for compilers that know it (clang 20, ROCm 7). Tested in emulation only.
#pragma once
#include "cdna.h"

namespace tilewright::kernel {
namespace amd {

typedef __bf16 bfloat8 __attribute__((ext_vector_type(8)));

struct DeepMfma16 : Wave64 {
    using Layout = layouts::Mfma16x16x32;
    using Operand = short8;
    using Vector = float4;
    static constexpr int products = 1;
    static TILEWRIGHT_DEVICE float4 multiply(bf16, short8 a, short8 b, float4 c) {
        return __builtin_amdgcn_mfma_f32_16x16x32_bf16(__builtin_bit_cast(bfloat8, a), __builtin_bit_cast(bfloat8, b), c, 0, 0, 0);
    }
    static TILEWRIGHT_DEVICE float4 multiply(fp16, short8 a, short8 b, float4 c) {
        return __builtin_amdgcn_mfma_f32_16x16x32_f16(__builtin_bit_cast(half8, a), __builtin_bit_cast(half8, b), c, 0, 0, 0);
    }
};

struct DeepMfma32 : Wave64 {
    using Layout = layouts::Mfma32x32x16;
    using Operand = short8;
    using Vector = float16;
    static constexpr int products = 1;
    static TILEWRIGHT_DEVICE float16 multiply(bf16, short8 a, short8 b, float16 c) {
        return __builtin_amdgcn_mfma_f32_32x32x16_bf16(__builtin_bit_cast(bfloat8, a), __builtin_bit_cast(bfloat8, b), c, 0, 0, 0);
    }
    static TILEWRIGHT_DEVICE float16 multiply(fp16, short8 a, short8 b, float16 c) {
        return __builtin_amdgcn_mfma_f32_32x32x16_f16(__builtin_bit_cast(half8, a), __builtin_bit_cast(half8, b), c, 0, 0, 0);
    }
};

template <class Config>
using DeepMfmaOf = typename Choose<uses_side_32<Config>, DeepMfma32, DeepMfma16>::type;

}  // namespace amd

template <class Config>
struct Cdna4 : amd::Forward<Config, amd::DeepMfmaOf<Config>, AmdFamily::cdna> {
    static constexpr int probability_lift = amd::lift<typename Config::Element>(Config::slack);
};

}  // namespace tilewright::kernel
