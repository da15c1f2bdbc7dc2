// The CPU, backward: dQ as sums in memory, to which tiles of keys add one after another, so that every run gives the same bits.
#pragma once
#include <sched.h>

#include "../backward_tile.h"
#include "cpu_product.h"

namespace tilewright::kernel::cpu {

// Whoever waits lets others run: there may be fewer processors than threads.
inline void await_turn(const unsigned* turn, unsigned mine) {
    while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != mine) sched_yield();
}
TILEWRIGHT_DEVICE void give_turn(unsigned* turn) { __atomic_fetch_add(turn, 1u, __ATOMIC_RELEASE); }

// to[columns][rows] of from[rows][columns], both dense.
template <int rows, int columns>
void turn_tile(float* to, const float* from) {
    for (int r = 0; r < rows; r += lanes)
        for (int c = 0; c < columns; c += lanes) {
            Vector x[lanes];
            TILEWRIGHT_REGISTERS for (int i = 0; i < lanes; ++i) x[i] = *(const Vector*)(from + (r + i) * columns + c);
            turn(x);
            TILEWRIGHT_REGISTERS for (int i = 0; i < lanes; ++i) *(Vector*)(to + (c + i) * rows + r) = x[i];
        }
}

// to[width] (+)= left[count] right[count][width] with the members left out that `pairs` refuses: 0 * infinity is NaN. Rare, so simple; the same
// sums in the same order.
template <int width, int count, bool accumulate, class Pairs>
__attribute__((noinline)) void multiply_paired(float* to, const float* left, const float* right, Pairs pairs) {
    alignas(64) float paired[count * width];
    for (int k = 0; k < count; ++k)
        for (int c = 0; c < width; ++c) paired[k * width + c] = pairs(k) ? right[k * width + c] : 0;
    multiply<1, width, count, accumulate>(to, left, paired);
}

}  // namespace tilewright::kernel::cpu
