// NVIDIA sm_80 and later: rows in memory -> a tile in shared memory, by cp.async where their alignment allows it.
#pragma once
#include "nvidia.h"

namespace tilewright::kernel {
namespace nvidia {

// A piece of which the first `valid` elements exist.
template <class Element>
TILEWRIGHT_DEVICE uint4 gather_piece(const Element* from, int valid) {
    constexpr int columns = 16 / sizeof(Element);
    union {
        Element elements[columns];
        uint4 piece;
    } x;
    TILEWRIGHT_UNROLL for (int i = 0; i < columns; ++i) x.elements[i] = i < valid ? from[i] : Element{};
    return x.piece;
}

// `count` rows of `width` columns, of which row i comes from `from(i)`; zeros after the first `valid` rows and in the padding: 0 times
// what lies there need not be 0. All threads of the block take part, and wait for the copies that they started.
template <class Config, int count, int width, int threads, class Row>
TILEWRIGHT_DEVICE void copy_rows(unsigned to, int valid, Row&& from) {
    using Element = typename Config::Element;
    constexpr int pieces = sm80_row_pieces(width, sizeof(Element)), piece_columns = 16 / sizeof(Element);
    auto copy_piece = [&](int i) {
        int row = i / pieces, column = i % pieces * piece_columns;
        unsigned place = to + nvidia::place<pieces>(row, i % pieces);
        const Element* source = from(row < valid ? row : 0);
        if constexpr (Config::aligned) ptx::copy16(place, column < width ? source + column : source, row < valid && column < width);
        else ptx::store_shared(place, gather_piece(source + column, row < valid ? width - column : 0));
    };
    if constexpr (Config::aligned) {
        TILEWRIGHT_UNROLL for (int i = threadIdx.x; i < count * pieces; i += threads) copy_piece(i);
    } else {
        _Pragma("unroll 1") for (int i = threadIdx.x; i < count * pieces; i += threads) copy_piece(i);
    }
}

}  // namespace nvidia
}  // namespace tilewright::kernel
