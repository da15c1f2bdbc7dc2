// One tile of query rows: which head it belongs to, which keys its rows see, which KV tiles need a mask.
#pragma once
#include "../parameters.h"

namespace tilewright::kernel {

constexpr int min_of(int a, int b) { return a < b ? a : b; }
constexpr int max_of(int a, int b) { return a > b ? a : b; }

// Of packed sequences a tile's `batch` is the row of its sequence's first query, and this the row of its first key.
template <bool packed> struct FirstKey {};
template <> struct FirstKey<true> { int first_key; };

// Rows are queries; where the `group` query heads of a KV head are packed, row = query * group + head in the group.
template <class Config>
struct Tile : FirstKey<Config::packed> {
    int batch, head, kv_head;  // `head` is the first of the group
    int first_row, end_row, group;  // rows from end_row on are another tile's, or do not exist
    int seq_kv, diagonal, window_left, window_right;
    int kv_begin, kv_end;        // KV tiles that some row of the tile sees
    int whole_begin, whole_end;  // of these, the ones that every row sees whole
    int last_keys;               // that some row sees of KV tile kv_end - 1

    TILEWRIGHT_DEVICE int key_batch() const {
        if constexpr (Config::packed) return this->first_key;
        else return batch;
    }
    // Where the log-sum of a query of this sequence is.
    TILEWRIGHT_DEVICE long long lse_place(const ForwardParameters& p, int of_head, int of_query) const {
        if constexpr (Config::packed) return (long long)of_head * p.seq_q + (batch + of_query);
        else return ((long long)batch * p.heads_q + of_head) * p.seq_q + of_query;
    }
    TILEWRIGHT_DEVICE int query(int row) const { return (first_row + row) / group; }
    TILEWRIGHT_DEVICE int head_of(int row) const { return head + (first_row + row) % group; }
    TILEWRIGHT_DEVICE bool inside(int row) const { return first_row + row < end_row; }
    TILEWRIGHT_DEVICE int rows() const { return min_of(end_row - first_row, Config::block_q); }

    // The tile's row `row` sees the keys [visible_begin, visible_end).
    TILEWRIGHT_DEVICE int visible_begin(int row) const {
        if constexpr (Config::mask != Mask::window) return 0;
        else return max_of(0, query(row) + diagonal - window_left);
    }
    TILEWRIGHT_DEVICE int visible_end(int row) const {
        if constexpr (Config::mask == Mask::none) return seq_kv;
        else if constexpr (Config::mask == Mask::causal) return min_of(seq_kv, query(row) + diagonal + 1);
        else return min_of(seq_kv, query(row) + diagonal + 1 + window_right);
    }
    TILEWRIGHT_DEVICE bool needs_mask(int kv) const {
        return kv >= whole_end || (Config::mask == Mask::window && kv < whole_begin);
    }

    // Counts the KV tiles that the rows from `first` to `last` see.
    TILEWRIGHT_DEVICE void count_kv_tiles(int first, int last) {
        constexpr int n = Config::block_kv;
        int begin = visible_begin(first), end = visible_end(last);  // both ends move down with the rows
        kv_begin = begin / n;
        kv_end = end > begin ? (end + n - 1) / n : kv_begin;
        last_keys = end - (kv_end - 1) * n;
        whole_begin = (visible_begin(last) + n - 1) / n;
        whole_end = max_of(0, visible_end(first)) / n;
    }
    TILEWRIGHT_DEVICE void count_kv_tiles() { count_kv_tiles(0, rows() - 1); }
    // This tile with no other KV tiles than those seen by the `count` rows from `first` on, of which some may lie outside; kv_begin and kv_end are the
    // tile's kv_begin where they see none.
    TILEWRIGHT_DEVICE Tile part(int first, int count) const {
        Tile part = *this;
        int last = min_of(first + count, rows()) - 1;
        part.count_kv_tiles(first, last);
        bool sees_nothing = last < first || (Config::mask == Mask::window && part.kv_end == part.kv_begin);
        part.kv_end = sees_nothing ? kv_begin : max_of(kv_begin, min_of(kv_end, part.kv_end));
        part.kv_begin = Config::mask == Mask::window ? max_of(kv_begin, min_of(part.kv_begin, part.kv_end)) : kv_begin;
        return part;
    }
};

// The index-th of all blocks of rows: heads in sections that share the cache; within one, block after block of all its heads.
struct WorkOrder {
    int head, block;
    TILEWRIGHT_DEVICE WorkOrder(int index, int blocks, int all_heads, int section_heads) {
        int first_head = index / (blocks * section_heads) * section_heads;
        int heads = min_of(all_heads - first_head, section_heads);
        int within = index - first_head * blocks;
        head = first_head + within % heads, block = within / heads;
    }
};

// Of all heads, how many each of `dies` has to itself: whole KV heads, of which `sharers` heads use one. The same number for each die.
constexpr int heads_of_die(int all_heads, int dies, int sharers) { return all_heads / (dies * sharers) * sharers; }

// The order of a device whose dies have a cache each and get blocks in turn: the blocks that share keys meet on one die. Its heads are walked
// there as by WorkOrder; heads that the dies cannot share out evenly come last and are everybody's.
template <int dies>
TILEWRIGHT_DEVICE WorkOrder work_order(int index, int blocks, int all_heads, int section_heads, int sharers) {
    if constexpr (dies == 1) return WorkOrder(index, blocks, all_heads, section_heads);
    int own = heads_of_die(all_heads, dies, sharers), owned = own * dies;
    bool on_die = index < owned * blocks;
    WorkOrder order(on_die ? index / dies : index - owned * blocks, blocks, on_die ? own : all_heads - owned, section_heads);
    order.head += on_die ? index % dies * own : owned;
    return order;
}

// What of a tile takes divisions to know, or bisection, so that one thread may find it for others.
template <bool packed> struct TilePlace {
    int batch, head, kv_head, first_row;  // first_row < 0: no tile
};
template <> struct TilePlace<true> {
    int batch, head, first_key, first_row, seq_q, seq_kv, unused[2];
};
template <class Config>
TILEWRIGHT_DEVICE TilePlace<Config::packed> no_tile() {
    TilePlace<Config::packed> place{};
    place.first_row = -1;
    return place;
}

// Where a mask hides most from the first rows, and blocks do not divide the rows, the first block has fewer than the others, not the last, which sees
// most: how many. They remain whole multiples of `unit`, the rows of a worker; where it is 0 the last block is the short one.
template <class Config, int unit>
constexpr bool first_is_short = unit > 0 && Config::mask != Mask::none;
template <class Config, int unit>
TILEWRIGHT_DEVICE int first_block_rows(int rows) { return ((rows - 1) % Config::block_q + unit) / unit * unit; }

// The index-th tile, 0 <= index < parameters.tiles. Under a mask the last rows see most and come first.
template <class Config, int unit = 0>
TILEWRIGHT_DEVICE TilePlace<false> place_at(const ForwardParameters& p, int index) {
    int group = Config::packs_heads ? p.heads_q / p.heads_kv : 1, heads = p.heads_q / group;
    int blocks = (p.seq_q * group + Config::block_q - 1) / Config::block_q;
    WorkOrder order = work_order<Config::dies>(index, blocks, p.batch * heads, p.section_heads, heads / p.heads_kv);
    TilePlace<false> place;
    place.batch = order.head / heads;
    place.head = order.head % heads * group;
    place.kv_head = place.head / (p.heads_q / p.heads_kv);
    int block = Config::mask == Mask::none ? order.block : blocks - 1 - order.block;
    place.first_row = block * Config::block_q;
    if constexpr (first_is_short<Config, unit>) place.first_row = max_of(0, place.first_row - Config::block_q + first_block_rows<Config, unit>(p.seq_q * group));
    return place;
}
template <class Config, int unit = 0>
TILEWRIGHT_DEVICE Tile<Config> tile_at(const ForwardParameters& p, const TilePlace<false>& place) {
    Tile<Config> tile;
    tile.batch = place.batch, tile.head = place.head, tile.kv_head = place.kv_head, tile.first_row = place.first_row;
    tile.group = Config::packs_heads ? p.heads_q / p.heads_kv : 1;
    tile.end_row = p.seq_q * tile.group;
    if constexpr (first_is_short<Config, unit>)
        if (tile.first_row == 0) tile.end_row = min_of(tile.end_row, first_block_rows<Config, unit>(tile.end_row));
    tile.seq_kv = p.seq_kv, tile.diagonal = p.diagonal;
    tile.window_left = p.window_left, tile.window_right = p.window_right;
    tile.count_kv_tiles();
    return tile;
}

// Packed sequences: slots of `block` rows, of which a sequence has as many as its rows, `group` for each of memory, may need wherever they
// begin: slot first_slot(s) is the first of sequence s, floor(first row / block) + s. So a slot's sequence is found by bisection, and how
// many slots there are follows from sizes alone. Some slots hold nothing. Of queries or of keys; parameters stay where they are, for copies
// would take registers.
template <bool of_queries, class Parameters>
struct SequenceSlots {
    const Parameters& p;
    int group, block;
    TILEWRIGHT_DEVICE int all_rows() const { return of_queries ? p.forward.seq_q : p.forward.seq_kv; }
    TILEWRIGHT_DEVICE int first(int sequence) const {
        const void* starts = of_queries ? p.query_starts : p.key_starts;
        long long row = p.wide ? ((const long long*)starts)[sequence] : ((const int*)starts)[sequence];
        return row < 0 ? 0 : row < all_rows() ? (int)row : all_rows();
    }
    TILEWRIGHT_DEVICE int length(int sequence) const { return max_of(0, first(sequence + 1) - first(sequence)); }
    TILEWRIGHT_DEVICE int first_slot(int sequence) const { return first(sequence) * group / block + sequence; }
    TILEWRIGHT_DEVICE int count() const { return all_rows() * group / block + p.sequences; }
    TILEWRIGHT_DEVICE int sequence_of(int slot) const {
        int sequence = 0;
        for (int end = p.sequences; end - sequence > 1;) {
            int middle = sequence + (end - sequence) / 2;
            if (first_slot(middle) <= slot) sequence = middle;
            else end = middle;
        }
        return sequence;
    }
};

// As for dense tensors; a slot that holds nothing becomes a tile without rows.
template <class Config, int = 0>
TILEWRIGHT_DEVICE TilePlace<true> place_at(const PackedParameters& packed, int index) {
    const ForwardParameters& p = packed.forward;
    int group = Config::packs_heads ? p.heads_q / p.heads_kv : 1;
    SequenceSlots<true, PackedParameters> queries{packed, group, Config::block_q};
    SequenceSlots<false, PackedParameters> keys{packed, 1, 1};
    int heads = p.heads_q / group, slots = queries.count();
    WorkOrder order = work_order<Config::dies>(index, slots, heads, p.section_heads, heads / p.heads_kv);
    int slot = Config::mask == Mask::none ? order.block : slots - 1 - order.block, sequence = queries.sequence_of(slot);
    int of_sequence = slot - queries.first_slot(sequence);
    TilePlace<true> place{};
    place.batch = queries.first(sequence), place.first_key = keys.first(sequence);
    place.head = order.head * group;
    place.seq_q = of_sequence < 0 ? 0 : max_of(0, queries.first(sequence + 1) - place.batch);
    place.seq_kv = max_of(0, keys.first(sequence + 1) - place.first_key);
    place.first_row = max_of(0, of_sequence) * Config::block_q;
    return place;
}
template <class Config, int = 0>
TILEWRIGHT_DEVICE Tile<Config> tile_at(const PackedParameters& packed, const TilePlace<true>& place) {
    const ForwardParameters& p = packed.forward;
    Tile<Config> tile;
    tile.batch = place.batch, tile.head = place.head, tile.kv_head = place.head / (p.heads_q / p.heads_kv), tile.first_row = place.first_row, tile.first_key = place.first_key;
    tile.group = Config::packs_heads ? p.heads_q / p.heads_kv : 1;
    tile.end_row = place.seq_q * tile.group, tile.seq_kv = place.seq_kv, tile.diagonal = packed.top_left ? 0 : place.seq_kv - place.seq_q;
    tile.window_left = p.window_left, tile.window_right = p.window_right;
    if (tile.rows() > 0) tile.count_kv_tiles();
    else tile.kv_begin = tile.kv_end = tile.whole_begin = tile.whole_end = tile.last_keys = 0;
    return tile;
}
template <class Config>
TILEWRIGHT_DEVICE Tile<Config> tile_at(const ParametersOf<Config>& p, int index) {
    return tile_at<Config>(p, place_at<Config>(p, index));
}

// Overlapped schedules with few stages are bound by the space that copies wait for: keys are copied before the values of the tile before
// them, values are given back soon, and every product takes its turn. With more stages the other way round was measured faster.
template <class Config>
constexpr bool short_of_space = Config::overlapped && Config::stages < 3;

// Byte offset of 16-byte piece `piece` of row `row` in shared memory whose rows have `pieces` of them, permuted within
// the row so that eight lanes reading the same piece of eight rows meet eight different bank groups.
template <int pieces>
TILEWRIGHT_DEVICE int swizzled(int row, int piece) {
    constexpr int span = pieces % 8 == 0 ? 8 : pieces % 4 == 0 ? 4 : pieces % 2 == 0 ? 2 : 1;
    return (row * pieces + (piece ^ (row & (span - 1)))) * 16;
}

// Hides the scores of row r whose columns are not in [begin, end), one after the other; without `has_begin` there is an end alone.
template <class Lane, bool has_begin, class Fragment>
TILEWRIGHT_DEVICE void hide_columns(Fragment& scores, int r, int begin, int end) {
    TILEWRIGHT_UNROLL for (int c = 0; c < Fragment::columns; ++c) {
        auto column = scores.column(c);
        auto visible = column < end;
        if constexpr (has_begin) visible = visible & (column >= begin);
        scores.at(r, c) = Lane::select(visible, scores.at(r, c), Lane::broadcast(-infinity));
    }
}

}  // namespace tilewright::kernel
