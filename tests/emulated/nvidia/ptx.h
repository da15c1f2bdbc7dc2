// Stands for kernels/arch/ptx.h where NVIDIA's kernels run on the emulated multiprocessor.
#pragma once
#include <cmath>
#include <cstring>

#include "../tile/element.h"
#include "isa/instructions.h"
#include "nvidia/cuda.h"

namespace tilewright::kernel::ptx {

namespace gpu = tilewright::emulated::gpu;

inline float flushed(float x) { return std::fabs(x) < 0x1p-126f ? 0.0f : x; }
inline float magnitude(float x) { return std::fabs(x); }
inline float exp2(float x) { return flushed(std::exp2(flushed(x))); }
inline float log2(float x) { return std::log2(flushed(x)); }
inline float reciprocal(float x) { return flushed(1.0f / flushed(x)); }
inline void settle(float& x) { asm volatile("" : "+m"(x)::"memory"); }

inline unsigned rounded_bits(bf16, float x) {
    unsigned bits = __builtin_bit_cast(unsigned, x);
    return x == x ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : 0x7fff;
}
inline unsigned rounded_bits(fp16, float x) { return x == x ? __builtin_bit_cast(unsigned short, (_Float16)x) : 0x7fff; }
template <class Element>
unsigned pack(Element type, float low, float high) {
    return rounded_bits(type, low) | rounded_bits(type, high) << 16;
}
inline unsigned shared_address(const void* x) { return gpu::shared_address(x); }
inline void store_shared(unsigned to, int x) { gpu::write_shared(to, &x, 4); }
inline void store_shared(unsigned to, uint4 x) { gpu::write_shared(to, &x, 16); }
inline void store_global(void* to, const unsigned (&x)[4]) {
    if ((unsigned long long)to % 16) gpu::fail("stores 16 bytes that are not aligned");
    std::memcpy(to, x, 16);
}
template <class T>
inline T read_shared(const char* from) {
    T x;
    gpu::read_shared(&x, gpu::shared_address(from), sizeof(T));
    return x;
}
inline void load_shared(int& x, unsigned from) { gpu::read_shared(&x, from, 4); }
inline void load_shared(float& x, unsigned from) { gpu::read_shared(&x, from, 4); }
inline uint4 load_shared4(unsigned from) {
    uint4 x;
    gpu::read_shared(&x, from, 16);
    return x;
}
inline void load_shared(float2& x, unsigned from) { gpu::read_shared(&x, from, 8); }
inline void load_shared(float4& x, unsigned from) { gpu::read_shared(&x, from, 16); }
inline void store_relaxed(unsigned to, int x) { gpu::relaxed_access(to), std::memcpy(gpu::shared_pointer(to), &x, 4); }
inline int load_relaxed(unsigned from) {
    gpu::relaxed_access(from);
    int x;
    std::memcpy(&x, gpu::shared_pointer(from), 4);
    return x;
}

// A half of the word is NaN where x is not finite; 0 * x is a zero otherwise, and so is the sum.
template <class Element>
unsigned add_zeros(Element, unsigned x, unsigned sum) {
    constexpr unsigned exponent = sizeof(Element) == 4 ? 0x7f800000u : __is_same(Element, bf16) ? 0x7f80u : 0x7c00u;
    if (sizeof(Element) == 4) return (x & exponent) == exponent ? 0x7fffffff : sum;
    for (int half = 0; half < 32; half += 16)
        if ((x >> half & exponent) == exponent) sum |= 0x7fffu << half;
    return sum;
}

inline void copy16(unsigned to, const void* from, bool inside) { gpu::copy16(to, from, inside); }
inline void copies_commit() { gpu::copies_commit(); }
template <int pending>
void copies_wait() {
    gpu::copies_wait(pending);
}

struct Matrices {
    unsigned x[4];
};
inline Matrices loaded_matrices(unsigned from, bool turned) {
    struct Row {
        unsigned words[4];
    } row;
    gpu::read_shared(&row, from, 16);
    return gpu::collective<Matrices>("ldmatrix", row, [turned](auto in, auto out) {
        auto element = [&](int block, int i, int j) { return in(block * 8 + i).words[j / 2] >> 16 * (j % 2) & 0xffff; };
        for (int l = 0; l < 32; ++l)
            for (int block = 0; block < 4; ++block) {
                int i = l / 4, j = l % 4 * 2;
                out(l).x[block] = turned ? element(block, j, i) | element(block, j + 1, i) << 16 : element(block, i, j) | element(block, i, j + 1) << 16;
            }
    });
}
inline void load_matrices(unsigned (&x)[4], unsigned from) {
    Matrices all = loaded_matrices(from, false);
    std::memcpy(x, all.x, sizeof x);
}
inline void load_matrices_turned(unsigned (&x)[4], unsigned from) {
    Matrices all = loaded_matrices(from, true);
    std::memcpy(x, all.x, sizeof x);
}

inline float value_of(bf16, unsigned bits) { return __builtin_bit_cast(float, bits << 16); }
inline float value_of(fp16, unsigned bits) { return (float)__builtin_bit_cast(_Float16, (unsigned short)bits); }
template <class Element>
void mma(Element type, float* c, const unsigned* a, const unsigned* b) {
    struct In {
        unsigned a[4], b[2];
        float c[4];
    } own;
    struct Out {
        float c[4];
    };
    std::memcpy(own.a, a, sizeof own.a), std::memcpy(own.b, b, sizeof own.b), std::memcpy(own.c, c, sizeof own.c);
    Out result = gpu::collective<Out>("mma", own, [type](auto in, auto out) {
        for (int l = 0; l < 32; ++l) std::memcpy(out(l).c, in(l).c, sizeof own.c);
        auto left = [&](int l, int e) { return value_of(type, in(l).a[e / 2] >> 16 * (e % 2) & 0xffff); };
        auto right = [&](int l, int e) { return value_of(type, in(l).b[e / 2] >> 16 * (e % 2) & 0xffff); };
        auto d = [&](int l, int e) -> float& { return out(l).c[e]; };
        (void)isa::multiply<isa::MmaSync16x8x16>(left, right, nullptr, d);
    });
    std::memcpy(c, result.c, sizeof result.c);
}

template <int barrier, int threads>
bool meet(bool x) {
    return gpu::named_barrier(barrier, threads, true, x);
}
inline unsigned count_arrival(unsigned* counter, int last) { return atomicInc(counter, (unsigned)last); }

}  // namespace tilewright::kernel::ptx
