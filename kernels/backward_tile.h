// How the backward is cut into tiles: a pass owns a tile of ROWS and walks over tiles of COLUMNS.
// Over keys: rows are keys, columns the queries that see them, of all query heads that share the keys.
// Over queries: rows are queries, columns the keys that they see.
#pragma once
#include "tile/tile.h"

namespace tilewright::kernel {

template <bool value> struct Constant { static constexpr bool is = value; };
struct NoFragment {};  // where a variant needs none

// One tile of columns of one head.
struct BackwardStep {
    int head, first;  // its head and its first column
    int left;         // steps to go, this one included
};

template <class Config>
struct BackwardTile {
    static constexpr bool over_keys = Config::over_keys;
    static constexpr int block_rows = over_keys ? Config::block_kv : Config::block_q, block_columns = over_keys ? Config::block_q : Config::block_kv;
    int batch, head;            // of the rows
    int first_row, rows;        // `rows`: of the whole sequence, as is `columns`
    int columns, group;         // `group`: query heads that share a KV head
    int before, after, offset;  // row r is aligned with column r + offset and is paired with so many columns on either side of it
    int first_column, end_column, steps;  // of each head; steps of all
    int whole_begin, whole_end;  // columns that every row is paired with

    TILEWRIGHT_DEVICE bool inside(int row) const { return first_row + row < rows; }
    // The tile's row `row` is paired with the columns [paired_begin, paired_end): a query sees the key.
    TILEWRIGHT_DEVICE int paired_begin(int row) const {
        if constexpr (Config::mask == Mask::none || (Config::mask == Mask::causal && !over_keys)) return 0;
        else return max_of(0, first_row + row + offset - before);
    }
    TILEWRIGHT_DEVICE int paired_end(int row) const {
        if constexpr (Config::mask == Mask::none || (Config::mask == Mask::causal && over_keys)) return columns;
        else return min_of(columns, first_row + row + offset + 1 + after);
    }
    // Whether a position (or each of a vector of them), counted as `begin` and `end` are, lies there.
    template <class Position>
    static TILEWRIGHT_DEVICE auto paired(Position column, int begin, int end) {
        if constexpr (!masks_padding && Config::mask == Mask::causal) return column >= begin;
        else return (column >= begin) & (column < end);
    }
    // Over keys, in a fixed order: how many tiles of keys add to the queries from `column` on before this one. Under a mask the later keys
    // do first: their walks begin later, so that no walk catches up with the one that it follows.
    static constexpr bool last_rows_first = Config::dq == 2 && Config::mask != Mask::none;
    TILEWRIGHT_DEVICE int earlier(int column) const {
        if constexpr (!last_rows_first) return first_row / block_rows;
        int last_query = min_of(column + block_columns, columns) - 1;
        return min_of(rows - 1, last_query - offset + before) / block_rows - first_row / block_rows;
    }
    // Queries past the end are zeros with infinite log-sums: their P and dS are zero unless a key is not finite, and then so is all that sees it;
    // but a softcap makes the score of an infinite key finite.
    static constexpr bool masks_padding = !over_keys || Config::softcap;
    TILEWRIGHT_DEVICE bool needs_mask(const BackwardStep& step) const {
        if constexpr (!masks_padding && Config::mask == Mask::none) return false;
        else return step.first < whole_begin || step.first + block_columns > whole_end;
    }

    TILEWRIGHT_DEVICE BackwardStep first_step() const { return {over_keys ? head * group : head / group, first_column, steps}; }
    TILEWRIGHT_DEVICE BackwardStep next(BackwardStep step) const {
        --step.left, step.first += block_columns;
        if (over_keys && step.first >= end_column) step.first = first_column, ++step.head;
        return step;
    }
    TILEWRIGHT_DEVICE void count_steps() {
        int last = min_of(rows - first_row, block_rows) - 1;
        int begin = paired_begin(0), end = paired_end(last);  // both ends move up with the rows
        first_column = begin / block_columns * block_columns, end_column = end;
        steps = end > begin ? (end - first_column + block_columns - 1) / block_columns * (over_keys ? group : 1) : 0;
        whole_begin = paired_begin(last), whole_end = paired_end(0);
        if (!masks_padding && whole_end == columns) whole_end += block_columns;
    }
};

// The index-th tile, 0 <= index < parameters.tiles. Under a mask the longest walks come first: over keys those of the first
// keys, over queries those of the last queries. In a fixed order whoever is waited for comes first.
template <class Config>
TILEWRIGHT_DEVICE BackwardTile<Config> backward_tile_at(const ForwardParameters& p, int index) {
    using Tile = BackwardTile<Config>;
    constexpr bool over_keys = Config::over_keys;
    Tile tile;
    tile.rows = over_keys ? p.seq_kv : p.seq_q, tile.columns = over_keys ? p.seq_q : p.seq_kv;
    tile.group = p.heads_q / p.heads_kv;
    tile.before = over_keys ? p.window_right : p.window_left, tile.after = over_keys ? p.window_left : p.window_right;
    tile.offset = over_keys ? -p.diagonal : p.diagonal;
    int heads = over_keys ? p.heads_kv : p.heads_q, blocks = (tile.rows + Tile::block_rows - 1) / Tile::block_rows;
    WorkOrder order(index, blocks, p.batch * heads, p.section_heads);
    tile.batch = order.head / heads, tile.head = order.head % heads;
    tile.first_row = ((over_keys && !Tile::last_rows_first) || Config::mask == Mask::none ? order.block : blocks - 1 - order.block) * Tile::block_rows;
    tile.count_steps();
    return tile;
}

}  // namespace tilewright::kernel
