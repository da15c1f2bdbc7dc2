// Element types by name, so that overloads can tell them apart, and the float constants that kernels need.
#pragma once
#include "target.h"

namespace tilewright::kernel {

struct fp32 {
    float value;
};
struct bf16 {
    unsigned short bits;
};
struct fp16 {
    unsigned short bits;
};

constexpr float log2_of_e = 1.4426950408889634f;
constexpr float log_of_2 = 0.6931471805599453f;
// Written as bits: some device compilers have no name for it that needs no header.
constexpr float infinity = __builtin_bit_cast(float, 0x7f800000u);

template <bool first, class A, class B> struct Choose { using type = A; };
template <class A, class B> struct Choose<false, A, B> { using type = B; };

constexpr int round_up(int x, int multiple) { return (x + multiple - 1) / multiple * multiple; }
constexpr int log2_of(int x) { return x > 1 ? 1 + log2_of(x / 2) : 0; }  // rounded down

}  // namespace tilewright::kernel
