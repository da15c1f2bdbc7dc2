// The CPU's matrix products: a block of the result stays in registers while the summed dimension runs.
#pragma once
#include "cpu_vector.h"

namespace tilewright::kernel::cpu {

// How many vectors of a row, and how many rows, a register block takes: all but the operands' registers.
constexpr int vector_registers = lanes == 16 ? 32 : 16;
constexpr int block_columns(int columns) {
    for (int wide = lanes == 16 ? 7 : 3; wide > 1; --wide)
        if (columns % wide == 0 && (wide <= 4 || columns == wide)) return wide;
    return 1;
}
constexpr int block_rows(int wide) { return min_of((vector_registers - 2) / wide - 1, 14); }

TILEWRIGHT_DEVICE void multiply_add(Vector& sum, const float& a, Vector b) { sum += a * b; }
TILEWRIGHT_DEVICE void multiply_add(Vector& sum, const unsigned& a, Vector b) { dot_pairs(sum, a, b); }

// c[tall][wide vectors] (+)= a[tall][steps] b[steps][wide vectors]; strides in 32-bit elements. `Left` is float, or unsigned
// for pairs of 16-bit elements.
template <int tall, int wide, bool accumulate, class Left>
TILEWRIGHT_DEVICE void multiply_block(float* c, int c_stride, const Left* a, int a_stride, const float* b, int b_stride, int steps) {
    Vector block[tall][wide];
    TILEWRIGHT_REGISTERS for (int i = 0; i < tall; ++i)
        TILEWRIGHT_REGISTERS for (int j = 0; j < wide; ++j) block[i][j] = accumulate ? *(Vector*)(c + i * c_stride + j * lanes) : Vector{};
    for (int k = 0; k < steps; ++k) {
        Vector right[wide];
        TILEWRIGHT_REGISTERS for (int j = 0; j < wide; ++j) right[j] = *(const Vector*)(b + k * b_stride + j * lanes);
        TILEWRIGHT_REGISTERS for (int i = 0; i < tall; ++i)
            TILEWRIGHT_REGISTERS for (int j = 0; j < wide; ++j) multiply_add(block[i][j], a[i * a_stride + k], right[j]);
    }
    TILEWRIGHT_REGISTERS for (int i = 0; i < tall; ++i)
        TILEWRIGHT_REGISTERS for (int j = 0; j < wide; ++j) *(Vector*)(c + i * c_stride + j * lanes) = block[i][j];
}

// c[M][N] (+)= a[M][steps] b[steps][N]; strides between rows, dense unless said.
template <int M, int N, int steps, bool accumulate, int c_stride = N, int a_stride = steps, class Left>
void multiply(float* c, const Left* a, const float* b) {
    constexpr int wide = block_columns(N / lanes), tall = min_of(block_rows(wide), M), tail = M % tall;
    for (int n = 0; n < N; n += wide * lanes) {
        int m = 0;
        for (; m + tall <= M; m += tall) multiply_block<tall, wide, accumulate>(c + m * c_stride + n, c_stride, a + m * a_stride, a_stride, b + n, N, steps);
        if constexpr (tail > 0) multiply_block<tail, wide, accumulate>(c + m * c_stride + n, c_stride, a + m * a_stride, a_stride, b + n, N, steps);
    }
}

}  // namespace tilewright::kernel::cpu
