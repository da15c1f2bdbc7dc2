// What each matrix instruction does to physical registers, from the vendors' manuals alone: the second source for
// kernels/arch/layouts.h, which it does not include. A is m x k, B is k x n, C and D are m x n; element e of a lane is its e-th
// element, two to a register where they have 16 bits.
#pragma once

namespace tilewright::isa {

struct At {
    int i, j;  // row, column
};

// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type": groupID = lane / 4, threadID_in_group = lane % 4.
struct MmaSync16x8x16 {
    static constexpr int m = 16, n = 8, k = 16, lanes = 32, a_elements = 8, b_elements = 4, d_elements = 4;
    static constexpr bool b_in_shared = false;
    static constexpr At a(int lane, int e) {
        int row = e == 0 || e == 1 || e == 4 || e == 5 ? lane / 4 : lane / 4 + 8;
        int column = e < 4 ? lane % 4 * 2 + (e & 1) : lane % 4 * 2 + (e & 1) + 8;
        return {row, column};
    }
    static constexpr At b(int lane, int e) { return {e < 2 ? lane % 4 * 2 + (e & 1) : lane % 4 * 2 + (e & 1) + 8, lane / 4}; }
    static constexpr At d(int lane, int e) { return {e < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (e & 1)}; }
};

// PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", N = 8: warp w of the warpgroup holds rows 16w to 16w + 15, each
// as in mma.m16n8k16. B is read from shared memory.
struct Wgmma64x8x16 {
    static constexpr int m = 64, n = 8, k = 16, lanes = 128, a_elements = 8, b_elements = 0, d_elements = 4;
    static constexpr bool b_in_shared = true;
    static constexpr At a(int lane, int e) {
        At within = MmaSync16x8x16::a(lane % 32, e);
        return {lane / 32 * 16 + within.i, within.j};
    }
    static constexpr At d(int lane, int e) {
        At within = MmaSync16x8x16::d(lane % 32, e);
        return {lane / 32 * 16 + within.i, within.j};
    }
};

// AMD CDNA3 ISA, matrix arithmetic (MFMA), dense layouts of one block: lane l holds row l % m of A, columns from 4 * (l / m) on,
// and B alike; of D it holds column l % n, in groups of four rows, of which the lanes beyond n have the next.
struct Mfma16x16x16 {
    static constexpr int m = 16, n = 16, k = 16, lanes = 64, a_elements = 4, b_elements = 4, d_elements = 4;
    static constexpr bool b_in_shared = false;
    static constexpr At a(int lane, int e) { return {lane % 16, 4 * (lane / 16) + e}; }
    static constexpr At b(int lane, int e) { return {4 * (lane / 16) + e, lane % 16}; }
    static constexpr At d(int lane, int e) { return {4 * (lane / 16) + e, lane % 16}; }
};
struct Mfma32x32x8 {
    static constexpr int m = 32, n = 32, k = 8, lanes = 64, a_elements = 4, b_elements = 4, d_elements = 16;
    static constexpr bool b_in_shared = false;
    static constexpr At a(int lane, int e) { return {lane % 32, 4 * (lane / 32) + e}; }
    static constexpr At b(int lane, int e) { return {4 * (lane / 32) + e, lane % 32}; }
    static constexpr At d(int lane, int e) { return {8 * (e / 4) + 4 * (lane / 32) + e % 4, lane % 32}; }
};
// AMD CDNA4 ISA: twice the depth, eight consecutive k in a lane; D as above.
struct Mfma16x16x32 {
    static constexpr int m = 16, n = 16, k = 32, lanes = 64, a_elements = 8, b_elements = 8, d_elements = 4;
    static constexpr bool b_in_shared = false;
    static constexpr At a(int lane, int e) { return {lane % 16, 8 * (lane / 16) + e}; }
    static constexpr At b(int lane, int e) { return {8 * (lane / 16) + e, lane % 16}; }
    static constexpr At d(int lane, int e) { return {4 * (lane / 16) + e, lane % 16}; }
};

struct Mfma32x32x16 {
    static constexpr int m = 32, n = 32, k = 16, lanes = 64, a_elements = 8, b_elements = 8, d_elements = 16;
    static constexpr bool b_in_shared = false;
    static constexpr At a(int lane, int e) { return {lane % 32, 8 * (lane / 32) + e}; }
    static constexpr At b(int lane, int e) { return {8 * (lane / 32) + e, lane % 32}; }
    static constexpr At d(int lane, int e) { return {8 * (e / 4) + 4 * (lane / 32) + e % 4, lane % 32}; }
};

// AMD RDNA3 ISA, wave matrix multiply-accumulate, wave32: lane i holds row i of A and column i of B, and so does lane i + 16; register e of D holds
// row 2e in lanes 0 to 15 and row 2e + 1 in lanes 16 to 31.
struct WmmaGfx11 {
    static constexpr int m = 16, n = 16, k = 16, lanes = 32, a_elements = 16, b_elements = 16, d_elements = 8;
    static constexpr bool b_in_shared = false;
    static constexpr At a(int lane, int e) { return {lane % 16, e}; }
    static constexpr At b(int lane, int e) { return {e, lane % 16}; }
    static constexpr At d(int lane, int e) { return {2 * e + lane / 16, lane % 16}; }
};
// AMD RDNA4 ISA, wave matrix multiply-accumulate, wave32: lanes 16 to 31 hold k = 8 to 15, and rows 8 to 15 of D.
struct WmmaGfx12 {
    static constexpr int m = 16, n = 16, k = 16, lanes = 32, a_elements = 8, b_elements = 8, d_elements = 8;
    static constexpr bool b_in_shared = false;
    static constexpr At a(int lane, int e) { return {lane % 16, e + 8 * (lane / 16)}; }
    static constexpr At b(int lane, int e) { return {e + 8 * (lane / 16), lane % 16}; }
    static constexpr At d(int lane, int e) { return {e + 8 * (lane / 16), lane % 16}; }
};

// D = A B + C on registers of all lanes, in float, k in ascending order. `b_shared` is B where it is in shared memory, [k][n].
// False if lanes that hold copies of an element disagree: the hardware's result is then undefined.
template <class I, class A, class B, class C>
bool multiply(const A& a, const B& b, const float (*b_shared)[I::n], C& c) {
    float left[I::m][I::k], right[I::k][I::n];
    bool left_set[I::m][I::k] = {}, right_set[I::k][I::n] = {}, sound = true;
    auto differ = [](float x, float y) { return !(x == y || (x != x && y != y)); };
    for (int lane = 0; lane < I::lanes; ++lane) {
        for (int e = 0; e < I::a_elements; ++e) {
            At at = I::a(lane, e);
            float x = a(lane, e);
            if (left_set[at.i][at.j] && differ(left[at.i][at.j], x)) sound = false;
            left[at.i][at.j] = x, left_set[at.i][at.j] = true;
        }
        if constexpr (!I::b_in_shared)
            for (int e = 0; e < I::b_elements; ++e) {
                At at = I::b(lane, e);
                float x = b(lane, e);
                if (right_set[at.i][at.j] && differ(right[at.i][at.j], x)) sound = false;
                right[at.i][at.j] = x, right_set[at.i][at.j] = true;
            }
    }
    if constexpr (I::b_in_shared)
        for (int k = 0; k < I::k; ++k)
            for (int j = 0; j < I::n; ++j) right[k][j] = b_shared[k][j];
    for (int lane = 0; lane < I::lanes; ++lane)
        for (int e = 0; e < I::d_elements; ++e) {
            At at = I::d(lane, e);
            float sum = c(lane, e);
            for (int k = 0; k < I::k; ++k) sum += left[at.i][k] * right[k][at.j];
            c(lane, e) = sum;
        }
    return sound;
}

}  // namespace tilewright::isa
