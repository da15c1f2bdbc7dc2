// AMD, backward: tiles of columns on their way to LDS, straight and transposed, and what is not finite in them.
#pragma once
#include "../backward_tile.h"
#include "amd.h"

namespace tilewright::kernel::amd {

// One tile of `depth` columns of memory on its way, in registers. `Forward` says how the products want it in LDS.
template <class Forward, int depth, bool straight, bool transposed>
struct Courier {
    using Element = typename Forward::Element;
    static constexpr int members = Forward::Config::block_kv, key_dim = Forward::needs.key_dim, value_dim = Forward::needs.value_dim;
    using Load = Blocks<(straight ? max_of(key_dim, value_dim) : value_dim) / 8, members, Forward::threads>;
    short8 block[Load::loads][4];

    // Members `first` to first + members - 1 of a head, of which those before `end` exist; zeros for others.
    template <bool aligned>
    TILEWRIGHT_DEVICE void fetch(const Element* base, const Strides& strides, int batch, int head, int first, int end) {
        const Element* from = row_of(base, strides, batch, head, first);
        TILEWRIGHT_UNROLL for (int n = 0; n < Load::loads; ++n) TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) {
            int member = Forward::key_at(Load::position(thread())) + Forward::key_at(Load::position_step(n)) + i, piece = Load::piece(thread()) + Load::piece_step(n);
            block[n][i] = short8{};
            if (Load::has(n) && first + member < end) block[n][i] = load_piece<depth, aligned>(from + member * strides.row + piece * 8, piece * 8);
        }
    }
    // Transposed, what is not finite is zero if `hides`; true if there was any.
    TILEWRIGHT_DEVICE bool put(char* to_straight, char* to_transposed, bool hides) {
        bool cleared = false;
        int self = thread();
        TILEWRIGHT_FORGET(self);
        TILEWRIGHT_UNROLL for (int n = 0; n < Load::loads; ++n) {
            int position = Load::position(self) + Load::position_step(n), piece = Load::piece(self) + Load::piece_step(n);
            if constexpr (straight) {
                int member = Forward::key_at(Load::position(self)) + Forward::key_at(Load::position_step(n));
                if (Load::has(n) && piece < key_dim / 8)
                    TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) *(short8*)(to_straight + slot<key_dim / 8>(member + i, piece)) = block[n][i];
            }
            if constexpr (transposed) {
                if (hides) TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) cleared |= clear_nonfinite<Element>(block[n][i]);
                if (Load::has(n) && piece < value_dim / 8) write_transposed<members / 8>(to_transposed, piece * 8, position, block[n]);
            }
        }
        return cleared;
    }
};

// Whether x holds for any thread of the block; uses its first words of LDS.
template <class Forward>
TILEWRIGHT_DEVICE bool any_of_block(bool x, unsigned* flags) {
    barrier();  // nobody reads tiles any more
    bool any = Forward::any(x);
    if (Forward::lane() == 0) flags[thread() / Forward::wave] = any;
    barrier();
    any = false;
    for (int i = 0; i < Forward::Config::workers; ++i) any |= flags[i] != 0;
    return any;
}

// Of one wave, after its rows of a gradient are stored: sums up what is not finite of the columns that a row is paired with and the bias does not hide.
// `weighted`: by P, which is finite; otherwise by dS, and inf * dS is NaN, because P is then 0 or NaN.
template <class Forward, bool weighted, int depth, class Element, class Tile, class Hidden>
TILEWRIGHT_DEVICE void reveal_gradient(const Tile& tile, Hidden&& hidden, const void* columns, const Strides& strides, void* gradient, const Strides& gradient_strides) {
    constexpr int count = Tile::block_rows / Forward::Config::workers;
    for (int row = Forward::first_row(); row < Forward::first_row() + count && tile.inside(row); ++row) {
        int begin = tile.paired_begin(row), end = tile.paired_end(row);
        for (int c = Forward::lane(); c < depth; c += Forward::wave) {
            float sum = 0;
            for (BackwardStep step = tile.first_step(); step.left > 0; step = tile.next(step)) {
                if (!tile.hides(step)) continue;
                int last = min_of(end, step.first + Tile::block_columns);
                for (int column = max_of(begin, step.first); column < last; ++column) {
                    float x = float_at(row_of((const Element*)columns, strides, tile.column_batch(), step.head, column) + c);
                    if (x - x != 0 && !hidden(Tile::over_keys ? step.head : tile.head, row, column)) sum += weighted ? x : x - x;
                }
            }
            Element* to = row_of((Element*)gradient, gradient_strides, tile.batch, tile.head, tile.first_row + row) + c;
            if (sum - sum != 0) store_global(to, (short)pack(Element(), float_at(to) + sum, 0.0f));
        }
    }
}

}  // namespace tilewright::kernel::amd
