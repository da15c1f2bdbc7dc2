// Stands for the compiler builtins that kernels/arch uses on AMD, so that the headers themselves run on fibers, lane by lane:
// matrix instructions as in tests/isa, lane exchanges as in the ISA manuals. For clang; include it before the arch headers.
#pragma once
#include <cmath>

#include "fibers.h"
#include "isa/instructions.h"

namespace tilewright::emulated {

inline bool flushes_fp16_subnormals = false;  // gfx90a: the matrix unit reads them as zero

inline float operand_value(bool is_bf16, short bits) {
    if (is_bf16) return __builtin_bit_cast(float, unsigned((unsigned short)bits) << 16);
    if (flushes_fp16_subnormals && (bits & 0x7c00) == 0) return 0;
    return float(__builtin_bit_cast(_Float16, bits));
}

// Operands are vectors of 16-bit elements, passed as shorts.
template <class I, class Operand, class Accumulator>
Accumulator matrix_product(bool is_bf16, Operand a, Operand b, Accumulator c) {
    struct In {
        Operand a, b;
        Accumulator c;
    };
    return collective<Accumulator>(In{a, b, c}, [is_bf16](auto in, auto out) {
        static float result[I::lanes][I::d_elements];
        for (int l = 0; l < I::lanes; ++l)
            for (int e = 0; e < I::d_elements; ++e) result[l][e] = in(l).c[e];
        auto left = [&](int l, int e) { return operand_value(is_bf16, in(l).a[e]); };
        auto right = [&](int l, int e) { return operand_value(is_bf16, in(l).b[e]); };
        auto d = [&](int l, int e) -> float& { return result[l][e]; };
        if (!isa::multiply<I>(left, right, nullptr, d)) std::fprintf(stderr, "copies of an operand's element differ\n"), std::abort();
        for (int l = 0; l < I::lanes; ++l) {
            Accumulator x;
            for (int e = 0; e < I::d_elements; ++e) x[e] = result[l][e];
            out(l) = x;
        }
    });
}

// v_perm_b32: bytes of {high, low} by number, 0 to 3 from low.
inline unsigned permuted_bytes(unsigned high, unsigned low, unsigned select) {
    unsigned long long both = (unsigned long long)high << 32 | low;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) out |= unsigned(both >> 8 * (select >> 8 * i & 7) & 255) << 8 * i;
    return out;
}
// ds_swizzle_b32 in bit mask mode: within 32 lanes, from lane ((l & and) | or) ^ xor.
inline int swizzled_lane(int pattern) {
    int l = lane();
    return (l & ~31) | ((((l & pattern) | pattern >> 5) ^ pattern >> 10) & 31);
}
// v_permlanex16_b32: from the lane of the other 16 that the lane's four bits of the selectors name.
inline int permuted_lane(unsigned low, unsigned high) {
    int l = lane();
    unsigned select = (l % 16 < 8 ? low >> 4 * (l % 8) : high >> 4 * (l % 8)) & 15;
    return ((l & ~15) ^ 16) | int(select);
}
inline float flushed(float x) { return std::fabs(x) < 0x1p-126f ? 0.0f : x; }

typedef short short_of_4 __attribute__((ext_vector_type(4)));
typedef short short_of_8 __attribute__((ext_vector_type(8)));
typedef short short_of_16 __attribute__((ext_vector_type(16)));

// By value: clang 19 takes the wrong half in a bit cast of a vector's .hi.
template <class To, class From>
To bits_as(From x) {
    return __builtin_bit_cast(To, x);
}

}  // namespace tilewright::emulated

#define TILEWRIGHT_EMULATED_PRODUCT(instruction, is_bf16, type, a, b, c)                                                     \
    tilewright::emulated::matrix_product<tilewright::isa::instruction>(is_bf16, tilewright::emulated::bits_as<tilewright::emulated::type>(a), \
                                                                       tilewright::emulated::bits_as<tilewright::emulated::type>(b), c)
#define __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, x, y, z) TILEWRIGHT_EMULATED_PRODUCT(Mfma16x16x16, true, short_of_4, a, b, c)
#define __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, x, y, z) TILEWRIGHT_EMULATED_PRODUCT(Mfma16x16x16, false, short_of_4, a, b, c)
#define __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a, b, c, x, y, z) TILEWRIGHT_EMULATED_PRODUCT(Mfma32x32x8, true, short_of_4, a, b, c)
#define __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, c, x, y, z) TILEWRIGHT_EMULATED_PRODUCT(Mfma32x32x8, false, short_of_4, a, b, c)
#define __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, c, x, y, z) TILEWRIGHT_EMULATED_PRODUCT(Mfma16x16x32, true, short_of_8, a, b, c)
#define __builtin_amdgcn_mfma_f32_16x16x32_f16(a, b, c, x, y, z) TILEWRIGHT_EMULATED_PRODUCT(Mfma16x16x32, false, short_of_8, a, b, c)
#define __builtin_amdgcn_mfma_f32_32x32x16_bf16(a, b, c, x, y, z) TILEWRIGHT_EMULATED_PRODUCT(Mfma32x32x16, true, short_of_8, a, b, c)
#define __builtin_amdgcn_mfma_f32_32x32x16_f16(a, b, c, x, y, z) TILEWRIGHT_EMULATED_PRODUCT(Mfma32x32x16, false, short_of_8, a, b, c)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c) TILEWRIGHT_EMULATED_PRODUCT(WmmaGfx11, true, short_of_16, a, b, c)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c) TILEWRIGHT_EMULATED_PRODUCT(WmmaGfx11, false, short_of_16, a, b, c)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c) TILEWRIGHT_EMULATED_PRODUCT(WmmaGfx12, true, short_of_8, a, b, c)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c) TILEWRIGHT_EMULATED_PRODUCT(WmmaGfx12, false, short_of_8, a, b, c)

#define __builtin_amdgcn_workitem_id_x() (tilewright::emulated::thread())
#define __builtin_amdgcn_workgroup_id_x() (tilewright::emulated::block.index)
#define __builtin_amdgcn_s_barrier() tilewright::emulated::barrier()
#define __builtin_amdgcn_fence(...) ((void)0)
#define __builtin_amdgcn_s_setprio(priority) ((void)(priority))
#define __builtin_amdgcn_ballot_w32 tilewright::emulated::ballot
#define __builtin_amdgcn_ballot_w64 tilewright::emulated::ballot
#define __builtin_amdgcn_perm tilewright::emulated::permuted_bytes
#define __builtin_amdgcn_exp2f(x) tilewright::emulated::flushed(std::exp2(x))
#define __builtin_amdgcn_logf(x) std::log2(tilewright::emulated::flushed(x))
#define __builtin_amdgcn_ds_swizzle(x, pattern) tilewright::emulated::from_lane(x, tilewright::emulated::swizzled_lane(pattern))
#define __builtin_amdgcn_ds_bpermute(address, x) tilewright::emulated::from_lane(x, (address) / 4)
#define __builtin_amdgcn_permlanex16(old, x, low, high, fetch_inactive, bound_control) \
    tilewright::emulated::from_lane(x, tilewright::emulated::permuted_lane(low, high))
