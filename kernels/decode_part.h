// How decoding is divided. For every KV head and block of rows, the KV tiles that the rows see of all sequences lie in a line; a line
// is cut into units of work, so that a unit may hold many short sequences or a part of a long one. Neighbouring blocks walk the
// same stretch of different lines, so that what blocks of rows share is read at the same time.
#pragma once
#include "tile/tile.h"

namespace tilewright::kernel {

constexpr int partial_columns(int head_dim_v) { return round_up(head_dim_v, 4); }

// Lines of a launch: KV heads times blocks of rows, where rows are queries times query heads of the group.
template <class Config>
TILEWRIGHT_DEVICE int line_count(const ForwardParameters& p) {
    int rows = p.seq_q * (p.heads_q / p.heads_kv);
    return p.heads_kv * ((rows + Config::block_q - 1) / Config::block_q);
}

// `length` cut into `units` as equal as can be, of which none is empty: the first `larger` have one more.
struct Cut {
    int units, size, larger;
    TILEWRIGHT_DEVICE Cut(int length, int most) : units(min_of(length, most)), size(length / units), larger(length % units) {}
    TILEWRIGHT_DEVICE int start_of(int unit) const { return unit * size + min_of(unit, larger); }
    TILEWRIGHT_DEVICE int unit_of(int position) const {
        return position < larger * (size + 1) ? position / (size + 1) : (position - larger) / size;
    }
};

// Where rows are left that are not yet divided by their totals: row r at out + r * stride, its maximum and total at state + 2 * r.
struct RowSums {
    TILEWRIGHT_GLOBAL float *out, *state;
    int stride;
};
template <class Config>
TILEWRIGHT_DEVICE RowSums partial_sums(const DecodeParameters& decode, long long slot) {
    constexpr int stride = partial_columns(Config::head_dim_v);
    return {decode.partial_out + slot * Config::block_q * stride, decode.partial_state + slot * Config::block_q * 2, stride};
}

// How the sequences of a line are looked through: what each of them counts for follows from its length. By one lane alone; architectures
// may do it by many lanes together.
struct OneLane {
    const TILEWRIGHT_GLOBAL int* lengths;
    int n;
    TILEWRIGHT_DEVICE int length(int i) const { return lengths[i]; }
    template <class Count>
    TILEWRIGHT_DEVICE int sum(Count&& count) const {
        int sum = 0;
        for (int i = 0; i < n; ++i) sum += count(i, lengths[i]);
        return sum;
    }
    // The first i whose count, added to all before it, is beyond `position`; `before` is the sum of those before it.
    template <class Count>
    TILEWRIGHT_DEVICE int find(int position, Count&& count, int& before) const {
        int i = before = 0;
        for (int next; before + (next = count(i, lengths[i])) <= position; ++i) before += next;
        return i;
    }
};

// An item: one sequence on one line. It takes one place even if it sees nothing: somebody must write that.
template <class Config>
TILEWRIGHT_DEVICE Tile<Config> item_of(const DecodeParameters& decode, int line, int sequence, int length) {
    const ForwardParameters& p = decode.forward;
    Tile<Config> tile;
    int blocks = line_count<Config>(p) / p.heads_kv;
    tile.batch = sequence;
    tile.kv_head = line / blocks;
    tile.group = p.heads_q / p.heads_kv;
    tile.head = tile.kv_head * tile.group;
    tile.first_row = line % blocks * Config::block_q;
    tile.end_row = p.seq_q * tile.group;
    tile.seq_kv = max_of(0, min_of(length, p.seq_kv));
    tile.diagonal = decode.top_left ? 0 : tile.seq_kv - p.seq_q;
    tile.window_left = p.window_left, tile.window_right = p.window_right;
    tile.count_kv_tiles();
    return tile;
}
template <class Config>
TILEWRIGHT_DEVICE int places_of(const Tile<Config>& item) { return max_of(1, item.kv_end - item.kv_begin); }

// A unit's share of an item: its KV tiles are [kv_begin, kv_end).
template <class Config>
struct Part : Tile<Config> {
    int item, unit;
    int first_unit, last_unit;   // of the line, that have a share of the item
    int line, lines, first_place;  // first_place: 1 if the first unit holds earlier items too
    TILEWRIGHT_DEVICE bool whole() const { return first_unit == last_unit; }
    TILEWRIGHT_DEVICE int parts() const { return last_unit - first_unit + 1; }
    // Where a unit leaves what it has of this item. It has at most two parts that are not whole: its first and its last one.
    TILEWRIGHT_DEVICE long long slot_of(int of_unit) const { return 2LL * (of_unit * lines + line) + (of_unit == first_unit ? first_place : 0); }
};

// The parts of one unit, one after another. Lanes that work together go through them together.
template <class Config, class Lanes = OneLane>
struct Parts {
    const DecodeParameters* decode;
    int line, lines;
    Lanes sequences;
    Cut cut;
    int unit, position, end;  // in the line
    int sequence = 0, first = 0;  // of which the item begins at `first`

    // There must be a sequence and a query. A unit that the line is too short for has no parts.
    TILEWRIGHT_DEVICE Parts(const DecodeParameters& of, int of_line, int of_unit)
        : decode(&of), line(of_line), lines(line_count<Config>(of.forward)), sequences{of.lengths, of.lengths ? of.forward.batch : 0}, cut(length(), of.units), unit(of_unit) {
        position = unit < cut.units ? cut.start_of(unit) : 0, end = unit < cut.units ? cut.start_of(unit + 1) : 0;
        if (position == end) return;
        if (decode->lengths) {
            sequence = sequences.find(position, [&](int i, int length) { return places(i, length); }, first);
        } else {
            int each = places(0, decode->forward.seq_kv);
            sequence = position / each, first = sequence * each;
        }
    }
    TILEWRIGHT_DEVICE bool next(Part<Config>& part) {
        if (position >= end) return false;
        static_cast<Tile<Config>&>(part) = item_of<Config>(*decode, line, sequence, decode->lengths ? sequences.length(sequence) : decode->forward.seq_kv);
        int past = first + places_of<Config>(part), stop = min_of(past, end), begin = part.kv_begin;
        part.kv_begin = begin + position - first;
        part.kv_end = min_of(part.kv_end, begin + stop - first);
        part.item = sequence * lines + line;
        part.unit = unit, part.line = line, part.lines = lines;
        part.first_unit = cut.unit_of(first), part.last_unit = cut.unit_of(past - 1);
        part.first_place = cut.start_of(part.first_unit) < first;
        position = stop, first = past, ++sequence;
        return true;
    }

private:
    TILEWRIGHT_DEVICE int places(int of_sequence, int length) const { return places_of(item_of<Config>(*decode, line, of_sequence, length)); }
    TILEWRIGHT_DEVICE int length() const {  // of the line
        if (!decode->lengths) return decode->forward.batch * places(0, decode->forward.seq_kv);
        return sequences.sum([&](int i, int length) { return places(i, length); });
    }
};

}  // namespace tilewright::kernel
