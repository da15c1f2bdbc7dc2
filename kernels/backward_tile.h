// How the backward is cut into tiles: a pass owns a tile of ROWS and walks over tiles of COLUMNS.
// Over keys: rows are keys, columns the queries that see them, of all query heads that share the keys.
// Over queries: rows are queries, columns the keys that they see.
#pragma once
#include "tile/tile.h"

namespace tilewright::kernel {

template <bool value> struct Constant { static constexpr bool is = value; };
struct NoFragment {};  // where a variant needs none

// Statistics of which S or dP is less already, because its product began with them, and how others are taken off. Log-sums that were divided by the scale
// are taken off before it multiplies, so that it may not be 0: scores of queries and keys that are not huge vanish beside what this makes of it.
struct TakenOff {};
template <class, class> struct Same : Constant<false> {};
template <class T> struct Same<T, T> : Constant<true> {};
template <class Value> TILEWRIGHT_DEVICE auto less(const Value& x, const TakenOff&, int, int) { return x; }
template <class Value, class Statistics> TILEWRIGHT_DEVICE auto less(const Value& x, const Statistics& statistics, int r, int c) { return x - statistics.at(r, c); }
TILEWRIGHT_DEVICE float divisible_scale(const ForwardParameters& p) { return p.scale < 1e-30f && p.scale > -1e-30f ? 1e-30f : p.scale; }
TILEWRIGHT_DEVICE float scale_beside(const ForwardParameters& p, const TakenOff&) { return divisible_scale(p); }
template <class Statistics> TILEWRIGHT_DEVICE float scale_beside(const ForwardParameters& p, const Statistics&) { return p.scale; }

// One tile of columns of one head.
struct BackwardStep {
    int head, first;  // its head and its first column
    int left;         // steps to go, this one included
};

// Of packed sequences a tile's `batch` is the row of its sequence's first member of those that the pass owns, and this what else there is to know.
template <bool packed> struct SequencePlace {};
template <> struct SequencePlace<true> {
    int first_of_columns;    // row of the first column
    int first_padded_query;  // of the padded queries of a head
};

template <class Config>
struct BackwardTile : SequencePlace<Config::packed> {
    static constexpr bool over_keys = Config::over_keys;
    static constexpr int block_rows = over_keys ? Config::block_kv : Config::block_q, block_columns = over_keys ? Config::block_q : Config::block_kv;
    int batch, head;            // of the rows
    int first_row, rows;        // `rows`: of the whole sequence, as is `columns`
    int columns, group;         // `group`: query heads that share a KV head
    int before, after, offset;  // row r is aligned with column r + offset and is paired with so many columns on either side of it
    int first_column, end_column, steps;  // of each head; steps of all
    int whole_begin, whole_end;  // columns that every row is paired with

    TILEWRIGHT_DEVICE int column_batch() const {
        if constexpr (Config::packed) return this->first_of_columns;
        else return batch;
    }
    // Where the log-sum and the delta of a query are.
    TILEWRIGHT_DEVICE long long statistics_place(const PlainBackwardParameters& p, int of_head, int query) const {
        if constexpr (Config::packed) return (long long)of_head * p.padded_queries + this->first_padded_query + query;
        else return ((long long)batch * p.forward.heads_q + of_head) * p.padded_queries + query;
    }
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
    // Over keys, in a fixed order, under a mask: walks of many columns of sums go back from the last queries, those of earlier keys first, which are the longest:
    // so a walk follows the one before from its first step on, where both would meet late if they began at the diagonal. Others begin there, those of later
    // keys first: they begin later, so that no walk catches up with the one that it follows. Which is faster was measured (docs/performance-log.md).
    static constexpr bool masked_in_order = over_keys && Config::dq == 2 && Config::mask != Mask::none;
    static constexpr bool walks_back = masked_in_order && Config::head_dim > 64, last_rows_first = masked_in_order && !walks_back;
    // How many tiles of keys add to the queries from `column` on before this one.
    TILEWRIGHT_DEVICE int earlier(int column) const {
        int block = first_row / block_rows;
        if constexpr (last_rows_first) return min_of(rows - 1, min_of(column + block_columns, columns) - 1 - offset + before) / block_rows - block;
        else if constexpr (Config::mask == Mask::window) return block - max_of(0, column - offset - after) / block_rows;
        else return block;
    }
    // Queries past the end are zeros with infinite log-sums: their P and dS are zero unless a key is not finite, and then so is all that sees it;
    // but a softcap makes the score of an infinite key finite, and a bias may be anything.
    static constexpr bool masks_padding = !over_keys || Config::softcap || Config::bias;
    TILEWRIGHT_DEVICE bool needs_mask(const BackwardStep& step) const {
        if constexpr (!masks_padding && Config::mask == Mask::none) return false;
        else return step.first < whole_begin || step.first + block_columns > whole_end;
    }
    // Whether columns may be hidden from some rows and not from others, and whether those of a step may.
    static constexpr bool rows_differ = Config::mask != Mask::none || Config::bias;
    TILEWRIGHT_DEVICE bool hides(const BackwardStep& step) const { return Config::bias || needs_mask(step); }

    TILEWRIGHT_DEVICE int last_columns() const { return first_column + (end_column - 1 - first_column) / block_columns * block_columns; }  // where they begin
    TILEWRIGHT_DEVICE BackwardStep first_step() const { return {over_keys ? head * group : head / group, walks_back ? last_columns() : first_column, steps}; }
    TILEWRIGHT_DEVICE BackwardStep next(BackwardStep step) const {
        --step.left, step.first += walks_back ? -block_columns : block_columns;
        if constexpr (walks_back) {
            if (step.first < first_column) step.first = last_columns(), ++step.head;
        } else {
            if (over_keys && step.first >= end_column) step.first = first_column, ++step.head;
        }
        return step;
    }
    // The first column of the step before.
    TILEWRIGHT_DEVICE int first_before(const BackwardStep& step) const {
        if constexpr (walks_back) return step.first < last_columns() ? step.first + block_columns : first_column;
        else return step.first > first_column ? step.first - block_columns : last_columns();
    }
    // Of dense tensors: what all tiles have in common.
    TILEWRIGHT_DEVICE void set_sizes(const ForwardParameters& p) {
        rows = over_keys ? p.seq_kv : p.seq_q, columns = over_keys ? p.seq_q : p.seq_kv;
        group = p.heads_q / p.heads_kv;
        before = over_keys ? p.window_right : p.window_left, after = over_keys ? p.window_left : p.window_right;
        offset = over_keys ? -p.diagonal : p.diagonal;
    }
    TILEWRIGHT_DEVICE void count_steps() {
        int last = min_of(rows - first_row, block_rows) - 1;
        int begin = paired_begin(0), end = paired_end(last);  // both ends move up with the rows
        first_column = begin / block_columns * block_columns, end_column = end;
        steps = end > begin ? (end - first_column + block_columns - 1) / block_columns * (over_keys ? group : 1) : 0;
        whole_begin = paired_begin(last), whole_end = paired_end(0);
        if (!masks_padding && whole_end == columns) whole_end += block_columns;
    }
    // Over queries: no other columns than those of the tile from `first` on.
    TILEWRIGHT_DEVICE void keep_columns(int first) {
        end_column = min_of(end_column, first + block_columns);
        steps = first >= first_column && first < end_column;
        first_column = first;
    }
};

// The index-th tile, 0 <= index < parameters.tiles. Under a mask the longest walks come first: over keys those of the first
// keys, over queries those of the last queries. In a fixed order whoever is waited for comes first.
template <class Config>
TILEWRIGHT_DEVICE BackwardTile<Config> backward_tile_at(const ForwardParameters& p, int index) {
    using Tile = BackwardTile<Config>;
    constexpr bool over_keys = Config::over_keys;
    Tile tile;
    tile.set_sizes(p);
    int heads = over_keys ? p.heads_kv : p.heads_q, blocks = (tile.rows + Tile::block_rows - 1) / Tile::block_rows;
    WorkOrder order = work_order<Config::dies>(index, blocks, p.batch * heads, p.section_heads, over_keys ? 1 : tile.group);
    tile.batch = order.head / heads, tile.head = order.head % heads;
    tile.first_row = ((over_keys && !Tile::last_rows_first) || Config::mask == Mask::none ? order.block : blocks - 1 - order.block) * Tile::block_rows;
    tile.count_steps();
    return tile;
}


TILEWRIGHT_DEVICE SequenceSlots<true, BackwardParameters> query_slots(const BackwardParameters& p, int block) { return {p, 1, block}; }
TILEWRIGHT_DEVICE SequenceSlots<false, BackwardParameters> key_slots(const BackwardParameters& p, int block) { return {p, 1, block}; }

// As for dense tensors; a slot that holds nothing becomes a tile without rows.
template <class Config>
TILEWRIGHT_DEVICE BackwardTile<Config> packed_backward_tile_at(const BackwardParameters& p, int index) {
    using Tile = BackwardTile<Config>;
    constexpr bool over_keys = Config::over_keys;
    const ForwardParameters& f = p.forward;
    SequenceSlots<!over_keys, BackwardParameters> of_rows{p, 1, Tile::block_rows};
    SequenceSlots<over_keys, BackwardParameters> of_columns{p, 1, 1};
    int slots = of_rows.count();
    WorkOrder order(index, slots, over_keys ? f.heads_kv : f.heads_q, f.section_heads);
    int slot = over_keys || Config::mask == Mask::none ? order.block : slots - 1 - order.block, sequence = of_rows.sequence_of(slot);
    int of_sequence = slot - of_rows.first_slot(sequence);
    Tile tile;
    tile.batch = of_rows.first(sequence), tile.head = order.head;
    tile.first_of_columns = of_columns.first(sequence);
    tile.first_padded_query = query_slots(p, backward_query_block).first_slot(sequence) * backward_query_block;
    tile.rows = of_rows.length(sequence), tile.columns = of_columns.length(sequence), tile.group = f.heads_q / f.heads_kv;
    tile.before = over_keys ? f.window_right : f.window_left, tile.after = over_keys ? f.window_left : f.window_right;
    tile.offset = p.top_left ? 0 : tile.columns - tile.rows;
    tile.first_row = of_sequence * Tile::block_rows;
    if (of_sequence >= 0 && tile.first_row < tile.rows) return tile.count_steps(), tile;
    tile.rows = tile.first_row = tile.first_column = tile.end_column = tile.steps = tile.whole_begin = tile.whole_end = 0;
    return tile;
}
template <class Config>
TILEWRIGHT_DEVICE BackwardTile<Config> backward_tile_at(const BackwardParametersOf<Config>& p, int index) {
    if constexpr (Config::packed) return packed_backward_tile_at<Config>(p, index);
    else return backward_tile_at<Config>(p.forward, index);
}

}  // namespace tilewright::kernel
