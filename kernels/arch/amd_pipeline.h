// K and V of a query tile, tile by tile: global memory -> registers, ahead of their use -> LDS. Values are transposed on the way.
#pragma once
#include "amd.h"

namespace tilewright::kernel::amd {

// Where rows of keys and values are, if they lie in pages.
template <bool paged> struct Pages {};
template <> struct Pages<true> {
    const TILEWRIGHT_GLOBAL int* numbers;  // of the sequence's pages
    int shift;
    template <class Element>
    TILEWRIGHT_DEVICE const Element* row(const void* base, const Strides& strides, int kv_head, int key) const {
        return row<Element>(base, strides, kv_head, key, numbers[key >> shift]);
    }
    template <class Element>
    TILEWRIGHT_DEVICE const Element* row(const void* base, const Strides& strides, int kv_head, int key, int page) const {
        return row_of((const Element*)base, strides, page, kv_head, key & ((1 << shift) - 1));
    }
};

template <class Arch>
struct Pipeline : Pages<Arch::Config::paged> {
    using Config = typename Arch::Config;
    using Element = typename Config::Element;
    static constexpr AmdResources needs = Arch::needs;
    static constexpr int threads = needs.threads, block_kv = Config::block_kv, stages = Config::stages;
    static constexpr int key_pieces = needs.key_dim / 8, value_pieces = needs.value_dim / 8;  // of a row in memory
    static constexpr int position_pieces = block_kv / 8;                                      // of a row of V^T in LDS
    static constexpr int key_bytes = 2 * block_kv * needs.key_dim, value_bytes = 2 * block_kv * needs.value_dim;

    // K: a thread has the same piece of 8 columns of every rows_at_once-th row.
    static constexpr int row_lanes = power_of_two_from(key_pieces), rows_at_once = threads / row_lanes;
    static constexpr int key_loads = (block_kv + rows_at_once - 1) / rows_at_once;
    // V: it has blocks of 4 keys by 8 columns.
    using Values = Blocks<value_pieces, block_kv, threads>;

    // One buffer: values are loaded while scores are computed and keys while the output is, so that only one of the two is in
    // registers. Overlapped, or with two buffers, both are loaded a tile ahead; two buffers need one barrier a tile, or two.
    static constexpr bool alternating = stages == 1 && !Config::overlapped, together = stages == 2 && !Config::overlapped;

    // Where rows of a tile may see different keys, 0 * infinity must be kept from those that do not see the value: infinite and
    // NaN values count as zeros in the product, and add_nonfinite puts them right in the end.
    static constexpr bool rows_differ = Config::mask != Mask::none || Config::bias;

    const ForwardParameters& p;
    const Tile<Config>& tile;
    char* shared;
    const void* queries;  // these are read from the arguments once, not in loops
    const Strides query_strides, key_strides, value_strides;
    const Element *key, *value;  // this thread's part of a tile at row 0 of the KV head
    int key_begin, key_end;      // some query of the tile sees these; what lies outside is read as zeros
    int next_keys, next_values, buffer = 0, value_buffer = 0;
    bool cleared = false;  // this thread has read an infinity or NaN as zero
    short8 key_piece[key_loads], value_piece[Values::loads][4];
    // Of the tile to be fetched next, in which pages its rows are: read a tile ahead, so that nobody waits for one load to begin another.
    int key_page[Config::paged ? key_loads : 1], value_page[Config::paged ? Values::loads : 1][4];

    TILEWRIGHT_DEVICE Pipeline(const ForwardParameters& p, const Tile<Config>& tile, char* shared, const Pages<Config::paged>& pages = {})
        : Pages<Config::paged>(pages), p(p), tile(tile), shared(shared), queries(p.query), query_strides(p.query_strides), key_strides(p.key_strides), value_strides(p.value_strides),
          key(row_of((const Element*)p.key, p.key_strides, tile.key_batch(), tile.kv_head, key_row()) + key_piece_at() * 8),
          value(row_of((const Element*)p.value, p.value_strides, tile.key_batch(), tile.kv_head, Arch::key_at(Values::position(thread()))) +
                Values::piece(thread()) * 8),
          key_begin(tile.visible_begin(0)),
          key_end(tile.visible_end(tile.rows() - 1)), next_keys(tile.kv_end - 1), next_values(tile.kv_end - 1) {
        int self = thread();
        __builtin_assume(self < threads);  // the compiler knows of 1,024, and would ask which lanes load
        find_key_pages(), find_value_pages();
        fetch_keys();
        if constexpr (!alternating) fetch_values();
    }

    TILEWRIGHT_DEVICE const char* keys() {  // [block_kv][key_dim]
        if constexpr (stages == 1 && Config::overlapped) barrier();  // everyone has read the last
        if constexpr (stages == 2) buffer ^= 1;
        write_keys(key_buffer());
        if constexpr (together) value_buffer ^= 1, write_values(values_at());
        barrier();
        if constexpr (!alternating) fetch_keys();
        if constexpr (!Config::overlapped) fetch_values();
        return key_buffer();
    }
    TILEWRIGHT_DEVICE const char* values() {  // V^T: [value_dim][block_kv], keys in the order of Arch::key_at
        if constexpr (together) return values_at();
        if constexpr (stages == 1 && Config::overlapped) barrier();
        if constexpr (stages == 2) value_buffer ^= 1;
        write_values(values_at());
        barrier();
        if constexpr (alternating) fetch_keys();
        else fetch_values();
        return values_at();
    }
    TILEWRIGHT_DEVICE typename Arch::Query query() const { return typename Arch::Query(*this); }
    TILEWRIGHT_DEVICE short8 query_piece(int row, int piece) const {
        if (!tile.inside(row)) return short8{};
        return load_piece<Config::head_dim, Config::aligned>(
            row_of((const Element*)queries, query_strides, tile.batch, tile.head_of(row), tile.query(row)) + piece * 8, piece * 8);
    }
    TILEWRIGHT_DEVICE char* queries_at() const { return shared + stages * (key_bytes + value_bytes); }
    TILEWRIGHT_DEVICE void release_query() {}
    TILEWRIGHT_DEVICE void release_keys() {}
    TILEWRIGHT_DEVICE void release_values() {}
    // The waves of a SIMD that are about to multiply go first.
    TILEWRIGHT_DEVICE void take_turn() {
        if constexpr (Config::turns) __builtin_amdgcn_s_setprio(1);
    }
    TILEWRIGHT_DEVICE void pass_turn() {
        if constexpr (Config::turns) __builtin_amdgcn_s_setprio(0);
    }

    // After the tile's rows are stored: adds the infinite and NaN values that each of them sees. Any weight will do, and the sum
    // of what is there and of these is what it would have been. Rare, so simple: a wave goes over its rows again.
    TILEWRIGHT_DEVICE void add_nonfinite() {
        constexpr int rows = Config::block_q / Config::workers;
        unsigned* flags = (unsigned*)shared;
        barrier();  // nobody reads keys or values any more
        bool any = Arch::any(cleared);
        if (Arch::lane() == 0) flags[thread() / needs.wave] = any;
        barrier();
        any = false;
        for (int i = 0; i < Config::workers; ++i) any |= flags[i] != 0;
        if (!any) return;
        __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent");  // other lanes stored what this one loads
        for (int row = Arch::first_row(); row < Arch::first_row() + rows && tile.inside(row); ++row)
            for (int c = Arch::lane(); c < Config::head_dim_v; c += needs.wave) add_nonfinite(row, c);
    }

private:
    TILEWRIGHT_DEVICE void add_nonfinite(int row, int c) const {
        int query = tile.query(row), head = tile.head_of(row);
        const Element* bias = Config::bias ? row_of((const Element*)p.bias, p.bias_strides, tile.batch, head, query) : nullptr;
        float sum = 0;
        for (int j = tile.visible_begin(row); j < tile.visible_end(row); ++j) {
            float x = float_at(row_of((const Element*)p.value, value_strides, tile.key_batch(), tile.kv_head, j) + c);
            if (x - x == 0) continue;
            if (Config::bias && Arch::gather(bias, p.bias_column_stride, j, tile.seq_kv) == -infinity) continue;
            sum += x;
        }
        Element* out = row_of((Element*)p.out, p.out_strides, tile.batch, head, query) + c;
        if (!(sum == 0)) store_global(out, (short)pack(Element(), float_at(out) + sum, 0.0f));
    }
    TILEWRIGHT_DEVICE char* key_buffer() const { return shared + buffer * key_bytes; }
    TILEWRIGHT_DEVICE char* values_at() const { return shared + stages * key_bytes + value_buffer * value_bytes; }

    TILEWRIGHT_DEVICE bool is_seen(int row) const { return row >= key_begin && row < key_end; }
    TILEWRIGHT_DEVICE bool all_seen(int first) const { return first >= key_begin && first + block_kv <= key_end; }

    static TILEWRIGHT_DEVICE int key_row() { return thread() / row_lanes; }
    static TILEWRIGHT_DEVICE int key_piece_at() { return thread() % row_lanes; }
    static TILEWRIGHT_DEVICE bool has_keys() {
        return (key_pieces == row_lanes || key_piece_at() < key_pieces) && (rows_at_once <= block_kv || key_row() < block_kv);
    }
    // This thread's part of key (value) `row` + what the thread adds, which is of the n-th load (its i-th key).
    TILEWRIGHT_DEVICE const Element* key_part(int row, int n) const {
        if constexpr (Config::paged) return this->template row<Element>(p.key, key_strides, tile.kv_head, row + key_row(), key_page[n]) + key_piece_at() * 8;
        else return key + row * key_strides.row;
    }
    TILEWRIGHT_DEVICE const Element* value_part(int row, int n, int i) const {
        if constexpr (Config::paged)
            return this->template row<Element>(p.value, value_strides, tile.kv_head, row + Arch::key_at(Values::position(thread())), value_page[n][i]) + Values::piece(thread()) * 8;
        else return value + row * value_strides.row;
    }
    // The page of a key that is seen; of another, that of the nearest one.
    TILEWRIGHT_DEVICE int page_of(int of_key) const { return this->numbers[max_of(key_begin, min_of(of_key, key_end - 1)) >> this->shift]; }
    TILEWRIGHT_DEVICE void find_key_pages() {
        if constexpr (Config::paged)
            if (next_keys >= tile.kv_begin)
                TILEWRIGHT_UNROLL for (int n = 0; n < key_loads; ++n) key_page[n] = page_of(next_keys * block_kv + n * rows_at_once + key_row());
    }
    TILEWRIGHT_DEVICE void find_value_pages() {
        if constexpr (Config::paged)
            if (next_values >= tile.kv_begin)
                TILEWRIGHT_UNROLL for (int n = 0; n < Values::loads; ++n) TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i)
                    value_page[n][i] = page_of(next_values * block_kv + Arch::key_at(Values::position_step(n)) + i + Arch::key_at(Values::position(thread())));
    }
    // Loads of whole tiles are to end apart from those of others. Where the compiler has the last one shared, it copies the loads before it first, and so
    // waits for them; beside a bias there is no register left for better.
    static TILEWRIGHT_DEVICE void end_whole() {
        if constexpr (!Config::bias) asm volatile("");
    }
    TILEWRIGHT_DEVICE void fetch_keys() {
        int first = next_keys * block_kv;
        if (next_keys >= tile.kv_begin) all_seen(first) ? (load_keys<true>(first), end_whole()) : load_keys<false>(first);
        --next_keys;
        find_key_pages();
    }
    template <bool whole>
    TILEWRIGHT_DEVICE void load_keys(int first) {
        TILEWRIGHT_UNROLL for (int n = 0; n < key_loads; ++n) {
            int row = first + n * rows_at_once;
            key_piece[n] = short8{};
            if (has_keys() && (whole || is_seen(row + key_row())))
                key_piece[n] = load_piece<Config::head_dim, Config::aligned>(key_part(row, n), key_piece_at() * 8);
        }
    }
    TILEWRIGHT_DEVICE void write_keys(char* to) const {
        if (has_keys()) TILEWRIGHT_UNROLL for (int n = 0; n < key_loads; ++n)
            *(short8*)(to + slot<key_pieces>(n * rows_at_once + key_row(), key_piece_at())) = key_piece[n];
    }

    TILEWRIGHT_DEVICE void fetch_values() {
        int first = next_values * block_kv;
        if (next_values >= tile.kv_begin) all_seen(first) ? (load_values<true>(first), end_whole()) : load_values<false>(first);
        --next_values;
        find_value_pages();
    }
    template <bool whole>
    TILEWRIGHT_DEVICE void load_values(int first) {
        TILEWRIGHT_UNROLL for (int n = 0; n < Values::loads; ++n) TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) {
            int row = first + Arch::key_at(Values::position_step(n)) + i;
            value_piece[n][i] = short8{};
            if (Values::has(n) && (whole || is_seen(row + Arch::key_at(Values::position(thread())))))
                value_piece[n][i] = load_piece<Config::head_dim_v, Config::aligned>(value_part(row, n, i) + Values::piece_step(n) * 8,
                                                                                    (Values::piece(thread()) + Values::piece_step(n)) * 8);
        }
    }
    TILEWRIGHT_DEVICE void write_values(char* to) {
        if constexpr (rows_differ)
            if (Config::bias || tile.needs_mask(next_values + 1))
                TILEWRIGHT_UNROLL for (int n = 0; n < Values::loads; ++n)
                    TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) cleared |= clear_nonfinite<Element>(value_piece[n][i]);
        int self = thread();
        TILEWRIGHT_FORGET(self);
        TILEWRIGHT_UNROLL for (int n = 0; n < Values::loads; ++n) {
            int column = (Values::piece(self) + Values::piece_step(n)) * 8, position = Values::position(self) + Values::position_step(n);
            if (Values::has(n)) write_transposed<position_pieces>(to, column, position, value_piece[n]);
        }
    }
};

}  // namespace tilewright::kernel::amd
