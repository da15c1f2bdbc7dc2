// AMD RDNA4 (gfx1200, gfx1201): WMMA 16x16x16 by waves of 32.
#pragma once
#include "wave32.h"

namespace tilewright::kernel {
namespace amd {

struct WmmaGfx12 : Wave32 {
    using Layout = layouts::WmmaGfx12;
    using Operand = short8;
    static TILEWRIGHT_DEVICE float8 multiply(bf16, short8 a, short8 b, float8 c) { return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c); }
    static TILEWRIGHT_DEVICE float8 multiply(fp16, short8 a, short8 b, float8 c) {
        return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(__builtin_bit_cast(half8, a), __builtin_bit_cast(half8, b), c);
    }
    static TILEWRIGHT_DEVICE short8 spread(short8 x) { return x; }
};

}  // namespace amd

template <class Config>
struct Rdna4 : amd::Forward<Config, amd::WmmaGfx12, AmdFamily::rdna4> {};

}  // namespace tilewright::kernel
