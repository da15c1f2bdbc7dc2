// NVIDIA sm_90a: how a warpgroup's outputs reach memory, by way of a place in shared memory that is as large.
#pragma once
#include "hopper_wgmma.h"

namespace tilewright::kernel {
namespace hopper {

// The first half of an accumulator's columns, seen as an accumulator.
template <class Whole>
struct FirstHalf {
    static constexpr int rows = Whole::rows, columns = Whole::columns / 2, strips = 1;
    Whole& whole;
    TILEWRIGHT_DEVICE float& at(int r, int c) { return whole.at(r, c); }
    static TILEWRIGHT_DEVICE int row(int r) { return Whole::row(r); }
    static TILEWRIGHT_DEVICE int column(int c) { return Whole::column(c); }
    static TILEWRIGHT_DEVICE int columns_within(int span) { return Whole::columns_within(span); }
    TILEWRIGHT_DEVICE void settle() {
        TILEWRIGHT_UNROLL for (int i = 0; i < 2 * columns; ++i) ptx::settle(whole.d[0][i]);
    }
    TILEWRIGHT_DEVICE unsigned pair(int s, int i) { return whole.pair(s, i); }
    TILEWRIGHT_DEVICE float (&numbers())[2 * columns] { return reinterpret_cast<float(&)[2 * columns]>(whole.d[0]); }
};

template <class Element, int N>
struct Output : Accumulator<Element, N> {
    using Accumulator<Element, N>::rows;

    // The zeros are in their registers before a product begins.
    TILEWRIGHT_DEVICE void clear() { Accumulator<Element, N>::clear(), this->settle(); }

    // Rows that round_row() has rounded: each lane gives up pairs of columns and gets 16 bytes at a time of the same rows. `place` has the warp's 16
    // rows, as the copy engine would leave them: panels of 64 columns, `panel_bytes` apart. Of eight rows the same piece of 16 bytes is written at
    // once, and of two rows next to each other the same four are read at once: neither meets a bank twice.
    TILEWRIGHT_DEVICE void turn(unsigned place, int panel_bytes) {
        static_assert(N % 32 == 0, "four pieces at a time");
        int lane = threadIdx.x % 32;
        unsigned to = place + lane % 8 * 128 + (lane / 8 ^ key(lane % 8)) * 16, from = place + lane / 4 * 128 + (lane % 4 ^ key(lane / 4)) * 16;
        TILEWRIGHT_UNROLL for (int r = 0; r < rows; ++r) TILEWRIGHT_UNROLL for (int four = 0; four < N / 32; ++four) {
            unsigned x[4];
            TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) x[i] = this->rounded(r, 4 * four + i);
            ptx::store_matrices((to + four / 2 * panel_bytes + r * 1024) ^ four % 2 * 64, x);
        }
        ptx::fence_async();  // what is copied there next comes after this
        __syncwarp();
        TILEWRIGHT_UNROLL for (int r = 0; r < rows; ++r) TILEWRIGHT_UNROLL for (int four = 0; four < N / 32; ++four) {
            uint4 x = ptx::load_shared4((from + four / 2 * panel_bytes + r * 1024) ^ four % 2 * 64);
            TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) this->set_rounded(r, 4 * four + i, (&x.x)[i]);
        }
    }
    TILEWRIGHT_DEVICE void store_turned_row(int r, Element* to, bool inside) {
        TILEWRIGHT_UNROLL for (int four = 0; four < N / 32; ++four) {
            unsigned x[4];
            TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) x[i] = this->rounded(r, 4 * four + i);
            if (inside) ptx::store_global(to + 32 * four + threadIdx.x % 4 * 8, x);
        }
    }

private:
    static TILEWRIGHT_DEVICE int key(int row) { return row % 2 * 4 + row / 2 % 4; }
};

}  // namespace hopper
}  // namespace tilewright::kernel
