// What AMD's architectures share: vectors, rounding, memory, lanes. The architecture itself is amd_forward.h over a `Matrix`,
// which cdna.h, rdna3.h and rdna4.h describe.
#pragma once
#include "../resources_amd.h"
#include "../tile/accumulator.h"
#include "lane.h"

namespace tilewright::kernel::amd {

typedef short short4 __attribute__((ext_vector_type(4)));
typedef short short8 __attribute__((ext_vector_type(8)));
typedef short short16 __attribute__((ext_vector_type(16)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef float float16 __attribute__((ext_vector_type(16)));
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef _Float16 half8 __attribute__((ext_vector_type(8)));
typedef _Float16 half16 __attribute__((ext_vector_type(16)));

TILEWRIGHT_DEVICE int thread() { return __builtin_amdgcn_workitem_id_x(); }

// Orders LDS only: global loads stay in flight across it.
TILEWRIGHT_DEVICE void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

// Two floats as neighbouring elements, to nearest even, NaN kept.
TILEWRIGHT_DEVICE unsigned pack(fp16, float low, float high) {
    return __builtin_bit_cast(unsigned short, (_Float16)low) | (unsigned)__builtin_bit_cast(unsigned short, (_Float16)high) << 16;
}
TILEWRIGHT_DEVICE unsigned upper_half_rounded(float x) {
    unsigned bits = __builtin_bit_cast(unsigned, x), is_nan = -(unsigned)(x != x);  // no select: it would become branches
    return ((bits + 0x7fff + (bits >> 16 & 1)) & ~is_nan) | ((bits | 0x400000) & is_nan);
}
TILEWRIGHT_DEVICE unsigned pack(bf16, float low, float high) {
    return __builtin_amdgcn_perm(upper_half_rounded(high), upper_half_rounded(low), 0x07060302);
}
// Of probabilities: ties away from zero, and NaN may be lost, which the row's factor brings back.
TILEWRIGHT_DEVICE unsigned pack_probabilities(fp16, float low, float high) { return pack(fp16(), low, high); }
TILEWRIGHT_DEVICE unsigned pack_probabilities(bf16, float low, float high) {
    unsigned l = __builtin_bit_cast(unsigned, low) + 0x8000, h = __builtin_bit_cast(unsigned, high) + 0x8000;
    return __builtin_amdgcn_perm(h, l, 0x07060302);
}

// Said to be global: pointers read from a struct of arguments would become flat accesses, which also wait for LDS.
template <class T>
TILEWRIGHT_DEVICE T load_global(const void* from) {
    return *(const __attribute__((address_space(1))) T*)from;
}
template <class Element>
TILEWRIGHT_DEVICE float float_at(const Element* from) {
    if constexpr (sizeof(Element) == 2) return to_float(Element{load_global<unsigned short>(from)});
    else return load_global<float>(from);
}
template <class T>
TILEWRIGHT_DEVICE void store_global(void* to, T x) {
    *(__attribute__((address_space(1))) T*)to = x;
}

// Eight elements from column `column` of a row of `dim` on; zeros where there are none. `aligned`: all or none are there.
template <int dim, bool aligned, class Element>
TILEWRIGHT_DEVICE short8 load_piece(const Element* from, int column) {
    short8 x{};
    if constexpr (aligned) {
        if (column < dim) x = load_global<short8>(from);
    } else {
        TILEWRIGHT_UNROLL for (int i = 0; i < 8; ++i)
            if (column + i < dim) x[i] = load_global<short>(from + i);
    }
    return x;
}
template <int dim, bool aligned, class Run, class Element>
TILEWRIGHT_DEVICE void store_run(Element* row, int column, Run x) {
    constexpr int count = sizeof(Run) / sizeof(short);
    if constexpr (aligned) {
        if (column < dim) store_global(row + column, x);
    } else {
        TILEWRIGHT_UNROLL for (int i = 0; i < count; ++i)
            if (column + i < dim) store_global<short>(row + column + i, x[i]);
    }
}

// Infinities and NaN become zeros; true if there were any.
TILEWRIGHT_DEVICE unsigned exponent_bits(fp16) { return 0x7c007c00; }
TILEWRIGHT_DEVICE unsigned exponent_bits(bf16) { return 0x7f807f80; }
template <class Element>
TILEWRIGHT_DEVICE bool clear_nonfinite(short8& piece) {
    struct {
        unsigned pair[4];
    } x = __builtin_bit_cast(decltype(x), piece);
    unsigned exponent = exponent_bits(Element()), lowest = exponent & ~(exponent << 1) & 0x7fff7fff, any = 0;
    TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) {
        unsigned full = ((x.pair[i] & exponent) + lowest) & 0x80008000;  // an exponent of ones carries into the sign's place
        x.pair[i] &= ~(full | (full - (full >> 15)));
        any |= full;
    }
    piece = __builtin_bit_cast(short8, x);
    return any != 0;
}

// Byte offset of a 16-byte piece in LDS, permuted within its row such that eight lanes that read a piece of eight neighbouring
// rows meet eight bank groups; of the transposed values, also eight that write rows eight apart. Written so that only the
// permuted bits need a register: the rest of a constant row or piece becomes the instruction's offset.
template <int pieces, bool transposed = false>
TILEWRIGHT_DEVICE int slot(int row, int piece) {
    constexpr int span = pieces % 8 == 0 ? 8 : pieces % 4 == 0 ? 4 : pieces % 2 == 0 ? 2 : 1;
    int turn = row / (8 / span) ^ (transposed ? row / 8 : 0);
    return row * (16 * pieces) + piece / span * (16 * span) + ((piece ^ turn) & (span - 1)) * 16;
}

// How threads share a tile that is transposed on its way to LDS: a thread has blocks of 4 members (rows in memory) by a piece of 8
// columns. Neighbouring threads have neighbouring pieces of a row, up to `span`, for reading; then neighbouring positions, for
// writing. All counts are powers of two: a thread's part of a number and that of its n-th load are different bits.
constexpr int power_of_two_from(int x) {
    int n = 1;
    while (n < x) n *= 2;
    return n;
}
template <int pieces, int members, int threads>
struct Blocks {
    static constexpr int span = min_of(8, power_of_two_from(pieces)), quads = members / 4, quads_at_once = threads / span;
    static constexpr int panels = (pieces + span - 1) / span, loads = (quads * panels + quads_at_once - 1) / quads_at_once;
    static TILEWRIGHT_DEVICE int position(int of_thread) { return of_thread / span % quads * 4; }
    static TILEWRIGHT_DEVICE int piece(int of_thread) { return of_thread / span / quads * span + of_thread % span; }
    // What the n-th load adds.
    static TILEWRIGHT_DEVICE constexpr int position_step(int n) { return n * quads_at_once % quads * 4; }
    static TILEWRIGHT_DEVICE constexpr int piece_step(int n) { return n * quads_at_once / quads * span; }
    static TILEWRIGHT_DEVICE bool has(int n) {
        return (panels * span == pieces && loads * quads_at_once == quads * panels) || piece(thread()) + piece_step(n) < pieces;
    }
};
// Eight columns of four members, transposed: rows of LDS are columns, `positions` pieces each.
template <int positions>
TILEWRIGHT_DEVICE void write_transposed(char* to, int column, int position, const short8 (&x)[4]) {
    short8 a = x[0], b = x[1], c = x[2], d = x[3];
    TILEWRIGHT_UNROLL for (int j = 0; j < 8; ++j)
        *(short4*)(to + slot<positions, true>(column + j, position / 8) + position % 8 * 2) = short4{a[j], b[j], c[j], d[j]};
}

// An element of a vector cannot be bound to a reference.
template <class Vector>
struct Reference {
    Vector& of;
    int i;
    TILEWRIGHT_DEVICE operator float() const { return of[i]; }
    TILEWRIGHT_DEVICE void operator=(float x) { of[i] = x; }
    TILEWRIGHT_DEVICE void operator*=(float x) { of[i] = of[i] * x; }
};

struct Lane : FloatLane {
    static TILEWRIGHT_DEVICE float max(float a, float b) { return __builtin_fmaxf(a, b); }
    static TILEWRIGHT_DEVICE float exp2(float x) { return __builtin_amdgcn_exp2f(x); }
    static TILEWRIGHT_DEVICE float exp2_at_most_one(float x) { return exp2(min(x, 0.0f)); }
    static TILEWRIGHT_DEVICE float log2(float x) { return __builtin_amdgcn_logf(x); }
    template <int pending, class Fragment>
    static TILEWRIGHT_DEVICE void finish(Fragment&) {}
    template <class Element>
    static TILEWRIGHT_DEVICE float gather(const Element* from, long long stride, int index, int count) {
        return float_at(from + min_of(index, count - 1) * stride);
    }
};

}  // namespace tilewright::kernel::amd
