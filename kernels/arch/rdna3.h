// AMD RDNA3 (gfx1100, gfx1101, gfx1151): WMMA 16x16x16 by waves of 32, operands held twice.
#pragma once
#include "wave32.h"

namespace tilewright::kernel {
namespace amd {

struct WmmaGfx11 : Wave32 {
    using Layout = layouts::WmmaGfx11;
    using Operand = short16;
    static TILEWRIGHT_DEVICE float8 multiply(bf16, short16 a, short16 b, float8 c) { return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c); }
    static TILEWRIGHT_DEVICE float8 multiply(fp16, short16 a, short16 b, float8 c) {
        return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(__builtin_bit_cast(half16, a), __builtin_bit_cast(half16, b), c);
    }
    // A lane has the even columns of 16 or the odd ones (lanes 16 to 31): both get all.
    static TILEWRIGHT_DEVICE short16 spread(short8 x) {
        static_assert(Layout::Accumulator::table.lane_bits[4].column == 1, "the halves of the wave interleave by columns");
        struct {
            unsigned pair[4];
        } own = __builtin_bit_cast(decltype(own), x);
        struct {
            unsigned pair[8];
        } all;
        bool upper = thread() % 32 >= 16;
        TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) {
            unsigned others = from_other_half(own.pair[i]);
            unsigned even = upper ? others : own.pair[i], odd = upper ? own.pair[i] : others;
            all.pair[2 * i] = __builtin_amdgcn_perm(odd, even, 0x05040100);
            all.pair[2 * i + 1] = __builtin_amdgcn_perm(odd, even, 0x07060302);
        }
        return __builtin_bit_cast(short16, all);
    }
};

}  // namespace amd

template <class Config>
struct Rdna3 : amd::Forward<Config, amd::WmmaGfx11, AmdFamily::rdna3> {};

}  // namespace tilewright::kernel
