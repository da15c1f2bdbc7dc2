// NVIDIA sm_90a, backward: what is not finite and hidden.
#pragma once
#include "../backward_tile.h"
#include "hopper_ptx.h"
#include "nvidia_backward_garbage.h"

namespace tilewright::kernel {

// Of the consumers of a pass: whether what a mask hides of a step may be garbage, and cleaning it.
template <class Config>
struct Sm90Hidden {
    static constexpr int cleaners = 128 * Config::workers, cleaners_barrier = 1;
    static TILEWRIGHT_DEVICE void meet() { ptx::named_sync(cleaners_barrier, cleaners); }
    // A query or key that is not finite leaves no S of its own finite, as dO leaves no dP, and so no dS: where something may be hidden these tell
    // whether there is garbage that a product with P = 0 or dS = 0 would meet. All are asked, hidden or not: telling which are costs more than it saves.
    static constexpr bool looks_for_garbage = Config::mask != Mask::none;
    float zeros = 0;  // unless NaN; of this step
    bool keys_hold_garbage = false;  // those of this tile, as far as its steps have told
    // All lanes know the same: the vote tells the compiler so, without which it takes them for parted from here on, and each shuffle of a step for one that
    // must gather them first.
    TILEWRIGHT_DEVICE bool garbage_in_keys() const { return Config::mask != Mask::none && __any_sync(~0u, keys_hold_garbage); }
    template <class Fragment>
    TILEWRIGHT_DEVICE void look_for_garbage(Fragment& x) {
        if constexpr (Config::gives_scored)
            TILEWRIGHT_UNROLL for (int c = 0; c < Fragment::columns; ++c) TILEWRIGHT_UNROLL for (int r = 0; r < Fragment::rows; ++r) zeros += x.at(r, c) * 0.0f;
    }
    // Also of this warp's scores.
    template <class Fragment>
    TILEWRIGHT_DEVICE bool finds_garbage(Fragment& x) {
        look_for_garbage(x);
        return __any_sync(~0u, !(zeros == 0));
    }
    template <int bytes>
    static TILEWRIGHT_DEVICE bool clean(unsigned tile) {
        return nvidia::clean<typename Config::Element, bytes / 16, cleaners>((int)threadIdx.x - 128, [&](int i) { return tile + i * 16; });
    }
};

// Keys that are not finite, where the pass over keys gives dQ. Scores take them as they are, and parts of dQ = dS K as zeros, because 0 * NaN is NaN for
// queries that do not see them; those that do get NaN afterwards, since whatever their dS is, dS * infinity is NaN if P is 0 or NaN. For an Sm90Backward or
// Sm90BackwardWide over keys.
template <class Arch>
struct Sm90KeyGarbage {
    using Element = typename Arch::Element;
    using Tile = typename Arch::Tile;
    using Sums = typename Arch::Sums;
    static constexpr int depth = Arch::scored_depth;

    static TILEWRIGHT_DEVICE const Element* keys(const ForwardParameters& p, const Tile& tile) {
        return row_of((const Element*)p.key, p.key_strides, tile.batch, tile.head, tile.first_row);
    }
    // Of all consumers, who have their scores: those that are not finite are zero in shared memory.
    static TILEWRIGHT_DEVICE void hide(unsigned keys) {
        Arch::Pipeline::meet();
        (void)Arch::Pipeline::template clean<Arch::shape.row_bytes[0]>(keys);
        ptx::fence_async();
        Arch::Pipeline::meet();
    }
    // Of all consumers, who have their parts of dQ: all are as they are in memory.
    static TILEWRIGHT_DEVICE void restore(const ForwardParameters& p, const Tile& tile, unsigned to) {
        Arch::Pipeline::meet();
        const Element* from = keys(p, tile);
        _Pragma("unroll 1") for (int i = (int)threadIdx.x - 128; i < Arch::rows * sm90_panels(depth) * 8; i += 128 * Arch::workers) {
            int row = i / 8 % Arch::rows, column = i / (8 * Arch::rows) * panel_columns + i % 8 * 8;
            uint4 x{0, 0, 0, 0};
            if (tile.inside(row) && column < depth) x = *(const uint4*)(from + row * p.key_strides.row + column);
            ptx::store_shared(to + i / 8 * 128 + (i % 8 ^ row % 8) * 16, x);
        }
        ptx::fence_async();
        Arch::Pipeline::meet();
    }
    // Of one warp: calls spoil(place) for those of its sums whose query, counted from `first_query` on, sees a key that is not finite in their column.
    template <class Spoil>
    static TILEWRIGHT_DEVICE void reveal(const ForwardParameters& p, const Tile& tile, int first_query, Spoil&& spoil) {
        int warp = (int)threadIdx.x / 32 - 4, first = first_query + (Sums::by_query ? warp : warp % 4) * 16, first_column = Sums::by_query ? 0 : warp / 4 * Sums::width;
        const Element* from = keys(p, tile);
        _Pragma("unroll 1") for (int key = 0; key < Arch::rows && tile.inside(key); ++key) {
            int begin = max_of(tile.paired_begin(key), first), end = min_of(tile.paired_end(key), first + 16);
            if (begin >= end) continue;
            _Pragma("unroll 1") for (int column = first_column + (int)threadIdx.x % 32; column < min_of(first_column + Sums::width, depth); column += 32) {
                if (nvidia::is_finite(to_float(from[key * p.key_strides.row + column]))) continue;
                _Pragma("unroll 1") for (int query = begin; query < end; ++query) spoil(Sums::place_of(query - first_query, column));
            }
        }
    }
};

}  // namespace tilewright::kernel
