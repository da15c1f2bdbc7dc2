// NVIDIA sm_90a, backward: where things are in shared memory.
#pragma once
#include "hopper.h"

namespace tilewright::kernel {

// For an Sm90Backward: 0 is of what is scored, 1 of what is carried.
template <class Arch>
struct Sm90BackwardPlaces {
    static constexpr auto& shape = Arch::shape;
    static constexpr int stages = Arch::stages;
    unsigned base;
    TILEWRIGHT_DEVICE explicit Sm90BackwardPlaces(char* shared) : base(ptx::shared_address(shared)) {}
    TILEWRIGHT_DEVICE unsigned row_tile(int which) const { return base + which * shape.row_bytes[0]; }
    TILEWRIGHT_DEVICE unsigned column_tile(int which, int stage) const {
        return base + shape.row_bytes[0] + shape.row_bytes[1] + which * stages * shape.column_bytes[0] + stage * shape.column_bytes[which];
    }
    TILEWRIGHT_DEVICE unsigned changes(int buffer) const { return base + shape.changes + buffer * shape.changes_bytes; }
    TILEWRIGHT_DEVICE unsigned sums(int warp) const { return base + shape.sums + warp * Arch::Sums::warp_floats * 4; }
    TILEWRIGHT_DEVICE unsigned statistics(int which, int stage) const { return base + shape.statistics + (which * (Arch::over_keys ? stages : 1) + stage) * shape.statistics_bytes; }
    TILEWRIGHT_DEVICE unsigned factors() const { return base + shape.factors; }  // sm90_statistics.h
    TILEWRIGHT_DEVICE unsigned barrier(int i) const { return base + shape.barriers + 8 * i; }
    TILEWRIGHT_DEVICE unsigned rows_full(int which) const { return barrier(which); }
    TILEWRIGHT_DEVICE unsigned rows_free(int which) const { return barrier(2 + which); }
    TILEWRIGHT_DEVICE unsigned changes_full(int buffer) const { return barrier(4 + buffer); }
    TILEWRIGHT_DEVICE unsigned changes_free(int buffer) const { return barrier(6 + buffer); }
    TILEWRIGHT_DEVICE unsigned tile_index() const { return barrier(8); }
    TILEWRIGHT_DEVICE unsigned found_garbage() const { return barrier(9); }  // Sm90KeyGarbage
    TILEWRIGHT_DEVICE unsigned tile_added() const { return barrier(10); }
    TILEWRIGHT_DEVICE unsigned full(int which, int stage) const { return barrier(11 + which * stages + stage); }
    TILEWRIGHT_DEVICE unsigned free(int which, int stage) const { return barrier(11 + (2 + which) * stages + stage); }
    TILEWRIGHT_DEVICE unsigned sums_full(int worker) const { return barrier(11 + 4 * stages + worker); }
    TILEWRIGHT_DEVICE unsigned sums_free(int worker) const { return barrier(11 + 4 * stages + Arch::workers + worker); }
    TILEWRIGHT_DEVICE unsigned tiles(int warp) const { return base + shape.tiles + 8 * warp; }  // that this consumer has had
    TILEWRIGHT_DEVICE unsigned by_rows(int warp) const { return base + shape.by_rows + warp * shape.by_rows_bytes; }
    TILEWRIGHT_DEVICE unsigned by_rows_full(int warp) const { return barrier(11 + 4 * stages + 2 * Arch::workers + warp); }  // of the loading warps, then of the consumers
};

}  // namespace tilewright::kernel
