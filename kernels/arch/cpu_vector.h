// The CPU's vectors: a Value is a vector of neighbouring columns of one row, so that SIMD lanes share a row as a GPU's do.
// Compiler vector extensions only; the prelude says how wide they are.
#pragma once
#include "../tile/tile.h"

#define TILEWRIGHT_REGISTERS _Pragma("GCC unroll 16")

namespace tilewright::kernel::cpu {

constexpr int lanes = vector_floats;  // from the prelude
typedef float Vector __attribute__((vector_size(4 * lanes), aligned(4), may_alias));
typedef int Index __attribute__((vector_size(4 * lanes), aligned(4), may_alias));
typedef unsigned short Half __attribute__((vector_size(2 * lanes), aligned(2), may_alias));
typedef _Float16 Float16 __attribute__((vector_size(2 * lanes), aligned(2), may_alias));
typedef unsigned Bits __attribute__((vector_size(4 * lanes), aligned(4), may_alias));

template <int... j> struct Lanes {};
template <int n> struct LanesOf;
template <> struct LanesOf<4> { using type = Lanes<0, 1, 2, 3>; };
template <> struct LanesOf<8> { using type = Lanes<0, 1, 2, 3, 4, 5, 6, 7>; };
template <> struct LanesOf<16> { using type = Lanes<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>; };
using AllLanes = typename LanesOf<lanes>::type;

TILEWRIGHT_DEVICE Vector broadcast(float x) { return x - Vector{}; }
template <int... j>
TILEWRIGHT_DEVICE Index lane_numbers(Lanes<j...>) { return Index{j...}; }

// One step of a butterfly: lane j meets lane j ^ distance.
template <int distance, int... j>
TILEWRIGHT_DEVICE Vector exchanged(Vector x, Lanes<j...>) { return __builtin_shufflevector(x, x, (j ^ distance)...); }
template <int distance = lanes / 2, class Combine>
TILEWRIGHT_DEVICE float reduce(Vector x, Combine combine) {
    x = combine(x, exchanged<distance>(x, AllLanes()));
    if constexpr (distance > 1) return reduce<distance / 2>(x, combine);
    else return x[0];
}

// Turns a square block of 32-bit elements: rows become columns. Bits only move.
template <int step, int... j>
TILEWRIGHT_DEVICE void turn_pair(Vector& a, Vector& b, Lanes<j...>) {
    Vector low = __builtin_shufflevector(a, b, (j & step ? lanes + j - step : j)...);
    b = __builtin_shufflevector(a, b, (j & step ? lanes + j : j + step)...);
    a = low;
}
template <int step = lanes / 2>
TILEWRIGHT_DEVICE void turn(Vector (&x)[lanes]) {
    TILEWRIGHT_REGISTERS for (int i = 0; i < lanes; ++i)
        if (!(i & step)) turn_pair<step>(x[i], x[i + step], AllLanes());
    if constexpr (step > 1) turn<step / 2>(x);
}

// In one instruction each where vectors are those of AVX-512 or AVX2: GCC 12 widens halves of a vector, and takes _Float16 apart.
TILEWRIGHT_DEVICE Vector widen(Half x, bf16) {
    Bits bits;
    if constexpr (lanes >= 8) asm("vpmovzxwd %1, %0" : "=v"(bits) : "vm"(x));
    else bits = __builtin_convertvector(x, Bits);
    return __builtin_bit_cast(Vector, bits << 16);
}
TILEWRIGHT_DEVICE Vector widen(Half x, fp16) {
    Vector floats;
    if constexpr (lanes >= 8) asm("vcvtph2ps %1, %0" : "=v"(floats) : "vm"(x));
    else floats = __builtin_convertvector(__builtin_bit_cast(Float16, x), Vector);
    return floats;
}
TILEWRIGHT_DEVICE float to_float(fp32 x) { return x.value; }
TILEWRIGHT_DEVICE float to_float(bf16 x) { return __builtin_bit_cast(float, (unsigned)x.bits << 16); }
TILEWRIGHT_DEVICE float to_float(fp16 x) { return (float)__builtin_bit_cast(_Float16, x.bits); }

// To nearest even; NaN stays NaN.
TILEWRIGHT_DEVICE fp32 rounded(fp32, float x) { return {x}; }
TILEWRIGHT_DEVICE fp16 rounded(fp16, float x) { return {__builtin_bit_cast(unsigned short, (_Float16)x)}; }
TILEWRIGHT_DEVICE bf16 rounded(bf16, float x) {
    unsigned bits = __builtin_bit_cast(unsigned, x), up = bits + 0x7fff + (bits >> 16 & 1);
    return {(unsigned short)(x == x ? up >> 16 : bits >> 16 | 0x40)};
}

template <class Element>
TILEWRIGHT_DEVICE Vector load_vector(const Element* from) {
    if constexpr (sizeof(Element) == 4) return *(const Vector*)from;
    else return widen(*(const Half*)from, Element());
}

// Columns [column, column + lanes) of a row of `count`; zeros past its end, which is never read past. A null row is all zeros.
template <class Element>
TILEWRIGHT_DEVICE Vector load(const Element* row, int column, int count) {
    if (!row) return Vector{};
    if (column + lanes <= count) return load_vector(row + column);
    Vector x{};
    for (int i = 0; column + i < count; ++i) x[i] = to_float(row[column + i]);
    return x;
}
// The same for 16-bit elements left as they are, two to a lane.
template <class Element>
TILEWRIGHT_DEVICE Vector load_pairs(const Element* row, int column, int count) {
    if (!row) return Vector{};
    if (column + 2 * lanes <= count) return *(const Vector*)(row + column);
    Bits x{};
    for (int i = 0; column + i < count && i < 2 * lanes; ++i) x[i / 2] |= (unsigned)row[column + i].bits << 16 * (i % 2);
    return __builtin_bit_cast(Vector, x);
}

// 2^x for x <= 127 to 1.5 units in the last place; 0 below the normal range, NaN for NaN. Coefficients: minimax on [-1/2, 1/2].
TILEWRIGHT_DEVICE Vector exp2(Vector x) {
    Vector shifted = x + 0x1.8p23f, part = x - (shifted - 0x1.8p23f);
    Vector y = 1.5403530e-4f * part + 1.3333558e-3f;
    y = y * part + 9.6181291e-3f;
    y = y * part + 5.5504109e-2f;
    y = y * part + 2.4022651e-1f;
    y = y * part + 6.9314718e-1f;
    y = y * part + 1.0f;
    Index power = (__builtin_bit_cast(Index, shifted) + 127) << 23;
    return x < -126.0f ? Vector{} : y * __builtin_bit_cast(Vector, power);
}

// acc += a[0] b[.][0] + a[1] b[.][1] for 16-bit pairs, one pair of `a` for all lanes (Intel SDM: VDPBF16PS).
TILEWRIGHT_DEVICE void dot_pairs(Vector& acc, const unsigned& a, Vector b) {
    asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(b), "m"(a));
}
// Rounds two vectors to bf16, low halves first (VCVTNE2PS2BF16).
TILEWRIGHT_DEVICE Vector round_pairs(Vector low, Vector high) {
    Vector pairs;
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs) : "v"(low), "v"(high));
    return pairs;
}

}  // namespace tilewright::kernel::cpu
