// Where the accumulator of a warp lies, seen as what one lane holds: a small matrix of rows x columns, from its layout.
// Storage is the architecture's: flat floats, or vectors.
#pragma once
#include "layout.h"

namespace tilewright::kernel {

// `strips` fragments F one below another, as many side by side as N columns need.
template <class F, int strips, int N>
struct Positions {
    static constexpr int height = F::table.rows, width = F::table.columns;
    static constexpr int strip_rows = rows_per_lane(F::table), tile_columns = columns_per_lane(F::table);
    static constexpr int rows = strips * strip_rows, columns = N / width * tile_columns;
    static constexpr int sharers = reduction_lanes(F::table);  // lane bits: who shares a row
    static_assert(N % width == 0, "the tile's width must be a multiple of the instruction's");

    // The lane's (r, c) is element `element` of fragment (strip, tile).
    static TILEWRIGHT_DEVICE constexpr int strip(int r) { return r / strip_rows; }
    static TILEWRIGHT_DEVICE constexpr int tile(int c) { return c / tile_columns; }
    static TILEWRIGHT_DEVICE constexpr int element(int r, int c) {
        return map_bits<ToElement<F, true>>(r % strip_rows) | map_bits<ToElement<F, false>>(c % tile_columns);
    }
    // Its place in the warp's rows and columns.
    static TILEWRIGHT_DEVICE constexpr int row(int lane, int r) {
        return strip(r) * height + map_bits<ToPlace<F, true>>(r % strip_rows) + map_bits<LaneToRow<F>>(lane);
    }
    static TILEWRIGHT_DEVICE constexpr int column(int lane, int c) {
        return tile(c) * width + map_bits<ToPlace<F, false>>(c % tile_columns) + map_bits<LaneToColumn<F>>(lane);
    }
    // Of the lanes that share its rows, the first.
    static TILEWRIGHT_DEVICE constexpr bool leads_row(int lane) { return (lane & sharers) == 0; }
};

}  // namespace tilewright::kernel
