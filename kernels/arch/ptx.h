// PTX of sm_80 and later: one instruction, one function. No other NVIDIA header but hopper_ptx.h is assembly: tests/emulated has these functions
// in C++, to run everything above them on the CPU.
#pragma once
#include "../tile/element.h"

namespace tilewright::kernel::ptx {

TILEWRIGHT_DEVICE float exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
TILEWRIGHT_DEVICE float magnitude(float x) {
    float y;
    asm("abs.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
TILEWRIGHT_DEVICE float log2(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
TILEWRIGHT_DEVICE float reciprocal(float x) {  // the last bit may be wrong
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
// Keeps the compiler from moving reads and writes across.
TILEWRIGHT_DEVICE void settle(float& x) { asm volatile("" : "+f"(x)::"memory"); }
// Two floats, rounded to nearest even, as they lie in memory.
TILEWRIGHT_DEVICE unsigned pack(bf16, float low, float high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
TILEWRIGHT_DEVICE unsigned pack(fp16, float low, float high) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
TILEWRIGHT_DEVICE unsigned shared_address(const void* x) { return (unsigned)__cvta_generic_to_shared(x); }
TILEWRIGHT_DEVICE void store_shared(unsigned to, int x) { asm volatile("st.shared.s32 [%0], %1;" ::"r"(to), "r"(x) : "memory"); }
TILEWRIGHT_DEVICE void store_shared(unsigned to, uint4 x) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}
// In one instruction: the compiler may take a vector apart.
TILEWRIGHT_DEVICE void store_global(void* to, const unsigned (&x)[4]) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
}
// Of a pointer into shared memory, as the compiler sees fit: it may join two, or leave one out.
template <class T>
TILEWRIGHT_DEVICE T read_shared(const char* from) { return *(const T*)from; }
TILEWRIGHT_DEVICE void load_shared(int& x, unsigned from) { asm volatile("ld.shared.s32 %0, [%1];" : "=r"(x) : "r"(from) : "memory"); }
TILEWRIGHT_DEVICE void load_shared(float& x, unsigned from) { asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory"); }
TILEWRIGHT_DEVICE uint4 load_shared4(unsigned from) {
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from) : "memory");
    return x;
}
TILEWRIGHT_DEVICE void load_shared(float2& x, unsigned from) { asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(from) : "memory"); }
TILEWRIGHT_DEVICE void load_shared(float4& x, unsigned from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(from) : "memory");
}
// Of a number in shared memory that some write while others read: no race if all do it so. As machine code these are plain accesses, which racecheck takes for
// one; in kernels for it they are atomic.
TILEWRIGHT_DEVICE void store_relaxed(unsigned to, int x) {
    if constexpr (TILEWRIGHT_FOR_RACECHECK) asm volatile("{\n.reg .b32 before;\natom.relaxed.cta.shared::cta.exch.b32 before, [%0], %1;\n}" ::"r"(to), "r"(x) : "memory");
    else asm volatile("st.relaxed.cta.shared::cta.b32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}
TILEWRIGHT_DEVICE int load_relaxed(unsigned from) {
    int x;
    if constexpr (TILEWRIGHT_FOR_RACECHECK) asm volatile("atom.relaxed.cta.shared::cta.or.b32 %0, [%1], 0;" : "=r"(x) : "r"(from) : "memory");
    else asm volatile("ld.relaxed.cta.shared::cta.b32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
    return x;
}

// sum + x * 0 of each element of a word: not zero if, and only if, one is NaN or infinite. `sum` starts as 0.
TILEWRIGHT_DEVICE unsigned add_zeros(bf16, unsigned x, unsigned sum) {
    asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(0));
    return sum;
}
TILEWRIGHT_DEVICE unsigned add_zeros(fp16, unsigned x, unsigned sum) {
    asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(0));
    return sum;
}
TILEWRIGHT_DEVICE unsigned add_zeros(fp32, unsigned x, unsigned sum) { return __float_as_uint(__uint_as_float(x) * 0.0f + __uint_as_float(sum)); }

TILEWRIGHT_DEVICE void copy16(unsigned to, const void* from, bool inside) {  // zeros if not inside
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
TILEWRIGHT_DEVICE void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
TILEWRIGHT_DEVICE void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Four 8x8 blocks; lane i gives the address of row i % 8 of block i / 8, and gets two elements of row i / 4 of each.
TILEWRIGHT_DEVICE void load_matrices(unsigned (&x)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from) : "memory");
}
TILEWRIGHT_DEVICE void load_matrices_turned(unsigned (&x)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from) : "memory");
}
// c (16x8) += a (16x16) b (16x8)
TILEWRIGHT_DEVICE void mma(bf16, float* c, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
TILEWRIGHT_DEVICE void mma(fp16, float* c, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Waits for `threads` threads at a barrier of the block; true if the argument is for any of them.
template <int barrier, int threads>
TILEWRIGHT_DEVICE bool meet(bool x) {
    int any;
    asm volatile("{\n.reg .pred own, all;\nsetp.ne.s32 own, %1, 0;\nbar.red.or.pred all, %2, %3, own;\nselp.s32 %0, 1, 0, all;\n}" : "=r"(any) : "r"((int)x), "n"(barrier), "n"(threads) : "memory");
    return any;
}
// Adds one to a counter in memory that is zero again after `last`: what it was. Orders what was written before it, by whoever counted, before what comes after.
TILEWRIGHT_DEVICE unsigned count_arrival(unsigned* counter, int last) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(last) : "memory");
    return before;
}

}  // namespace tilewright::kernel::ptx
