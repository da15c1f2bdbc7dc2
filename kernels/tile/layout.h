// What follows from a fragment's table, at compile time: who holds what, which lanes share a row, what can be used again as
// an operand. Device code gets masks and shifts, never the table.
#pragma once
#include "../arch/layouts.h"
#include "target.h"

namespace tilewright::kernel {

constexpr Place place(const Fragment& f, int lane, int element) {
    Place sum{};
    for (int b = 0; b < 7; ++b)
        if (lane >> b & 1) sum.row += f.lane_bits[b].row, sum.column += f.lane_bits[b].column;
    for (int b = 0; b < 4; ++b)
        if (element >> b & 1) sum.row += f.element_bits[b].row, sum.column += f.element_bits[b].column;
    return sum;
}

// Lane bits that tell apart lanes of the same row: what a row reduction goes over.
constexpr int reduction_lanes(const Fragment& f) {
    int mask = 0;
    for (int b = 0; 1 << b < f.lanes; ++b)
        if (f.lane_bits[b].row == 0 && f.lane_bits[b].column != 0) mask |= 1 << b;
    return mask;
}
// How many lanes hold each element.
constexpr int copies(const Fragment& f) {
    int n = 1;
    for (int b = 0; 1 << b < f.lanes; ++b)
        if (f.lane_bits[b].row == 0 && f.lane_bits[b].column == 0) n *= 2;
    return n;
}
constexpr int rows_per_lane(const Fragment& f) {
    int n = 1;
    for (int b = 0; 1 << b < f.elements; ++b)
        if (f.element_bits[b].row) n *= 2;
    return n;
}
constexpr int columns_per_lane(const Fragment& f) { return f.elements / rows_per_lane(f); }

constexpr bool is_power_of_two(int x) { return x > 0 && (x & (x - 1)) == 0; }

// Every bit moves the row or the column, not both, by a power of two, and none beyond lanes and elements stands for anything:
// then a lane's elements are a matrix of rows_per_lane x columns_per_lane, and every place is a mask and a shift away.
constexpr bool is_separable(const Fragment& f) {
    if (!is_power_of_two(f.lanes) || !is_power_of_two(f.elements) || f.lanes > 128 || f.elements > 16) return false;
    for (int b = 0; b < 11; ++b) {
        const Place& p = b < 7 ? f.lane_bits[b] : f.element_bits[b - 7];
        bool used = b < 7 ? 1 << b < f.lanes : 1 << (b - 7) < f.elements;
        if (p.row && p.column) return false;
        if (p.row + p.column && (!used || !is_power_of_two(p.row + p.column))) return false;
        if (b >= 7 && used && p.row + p.column == 0) return false;
    }
    return true;
}
// Every element of the matrix is held, by as many lanes as every other. The table must be separable: then its bits are to be those of all rows
// and all columns, each once.
constexpr bool covers(const Fragment& f) {
    int row_sum = 0, column_sum = 0, rows = 0, columns = 0;
    for (int b = 0; b < 11; ++b) {
        const Place& p = b < 7 ? f.lane_bits[b] : f.element_bits[b - 7];
        row_sum += p.row, column_sum += p.column, rows |= p.row, columns |= p.column;
    }
    return rows == f.rows - 1 && row_sum == rows && columns == f.columns - 1 && column_sum == columns;
}

// What follows compares tables bit by bit, which is enough, because places are sums over bits. (Going through all elements in every
// kernel took the compiler longer than the kernel; tests/isa does it.)

// What bit b of an element's number stands for, where fragments are set side by side.
constexpr Place element_place(const Fragment& f, int b) {
    if (1 << b < f.elements) return f.element_bits[b];
    return {0, (1 << b) / f.elements * f.columns};
}

// The elements of accumulators set side by side are, in the order in which a lane has them, those of left operands set side
// by side: rounding them makes the operand of the next product, no lane gives anything to another.
constexpr bool accumulator_is_left_operand(const Fragment& accumulator, const Fragment& left) {
    if (accumulator.lanes != left.lanes) return false;
    for (int b = 0; 1 << b < left.lanes; ++b)
        if (accumulator.lane_bits[b].row != left.lane_bits[b].row || accumulator.lane_bits[b].column != left.lane_bits[b].column) return false;
    for (int b = 0; 1 << b < left.elements || 1 << b < accumulator.elements; ++b) {
        Place a = element_place(accumulator, b), l = element_place(left, b);
        if (a.row != l.row || a.column != l.column) return false;
    }
    return true;
}
// Weaker: the lanes are right, and so is the number of elements, but the columns come in another order. That is as good where
// the rows of the right operand can be brought into the same order: a sum over k does not care.
constexpr bool accumulator_keeps_lanes(const Fragment& accumulator, const Fragment& left) {
    if (accumulator.lanes != left.lanes || copies(accumulator) != copies(left)) return false;
    if (accumulator.elements * left.columns != left.elements * accumulator.columns) return false;
    for (int b = 0; 1 << b < left.lanes; ++b)
        if (accumulator.lane_bits[b].row != left.lane_bits[b].row) return false;
    for (int b = 0; 1 << b < left.elements || 1 << b < accumulator.elements; ++b)
        if (element_place(accumulator, b).row != element_place(left, b).row) return false;
    return true;
}
// Which k an element belongs to depends on its number and the lane bits beyond the operand's rows (columns, of the right
// one), and for both operands alike: then any order of k serves that both are loaded in.
constexpr bool operands_agree(const Fragment& left, const Fragment& right) {
    if (left.lanes != right.lanes || left.elements != right.elements) return false;
    for (int b = 0; 1 << b < left.lanes; ++b)
        if (left.lane_bits[b].column != right.lane_bits[b].row) return false;
    for (int b = 0; 1 << b < left.elements; ++b)
        if (left.element_bits[b].column != right.element_bits[b].row) return false;
    return true;
}

// A map from bits to bits: Map::at(b) is what bit b of x stands for, 0 or a power of two. Bits that move by the same distance
// are moved together.
template <class Map>
constexpr int bits_that_move(int distance) {
    int mask = 0;
    for (int b = 0; b < 7; ++b)
        if (Map::at(b) && (distance >= 0 ? 1 << b << distance : 1 << b >> -distance) == Map::at(b)) mask |= 1 << b;
    return mask;
}
template <class Map, int distance>
constexpr int moved_bits = bits_that_move<Map>(distance);
template <class Map, int distance = -6>
TILEWRIGHT_DEVICE constexpr int map_bits(int x) {
    if constexpr (distance > 6) {
        return 0;
    } else {
        constexpr int mask = moved_bits<Map, distance>;
        int rest = map_bits<Map, distance + 1>(x);
        if constexpr (mask == 0) return rest;
        else if constexpr (distance >= 0) return rest | (x & mask) << distance;
        else return rest | (x & mask) >> -distance;
    }
}

// Of a Fragment held as F::table: the row or column that a lane adds.
template <class F>
struct LaneToRow {
    static constexpr int at(int bit) { return F::table.lane_bits[bit].row; }
};
template <class F>
struct LaneToColumn {
    static constexpr int at(int bit) { return F::table.lane_bits[bit].column; }
};
// The element bit that is bit `bit` of a lane's own row (or column) number; 16 where there is none.
template <class F, bool of_rows>
constexpr int element_bit(int bit) {
    for (int b = 0; b < 4; ++b)
        if ((of_rows ? F::table.element_bits[b].row : F::table.element_bits[b].column) && bit-- == 0) return b;
    return 16;
}
// From a lane's r-th row (c-th column) to the element's number ...
template <class F, bool of_rows>
struct ToElement {
    static constexpr int at(int bit) { return element_bit<F, of_rows>(bit) == 16 ? 0 : 1 << element_bit<F, of_rows>(bit); }
};
// ... and to the place in the fragment that it adds.
template <class F, bool of_rows>
struct ToPlace {
    static constexpr int at(int bit) {
        int b = element_bit<F, of_rows>(bit);
        return b == 16 ? 0 : of_rows ? F::table.element_bits[b].row : F::table.element_bits[b].column;
    }
};

template <class F>
constexpr bool is_sound = is_separable(F::table) && covers(F::table);

namespace layouts {
static_assert(is_sound<MmaSync16x8x16::Left> && is_sound<MmaSync16x8x16::Right> && is_sound<MmaSync16x8x16::Accumulator>);
static_assert(is_sound<Wgmma64x8x16::Left> && is_sound<Wgmma64x8x16::Accumulator>);
static_assert(is_sound<Mfma16x16x16::Left> && is_sound<Mfma16x16x16::Right> && is_sound<Mfma16x16x16::Accumulator>);
static_assert(is_sound<Mfma32x32x8::Left> && is_sound<Mfma32x32x8::Right> && is_sound<Mfma32x32x8::Accumulator>);
static_assert(is_sound<Mfma16x16x32::Left> && is_sound<Mfma16x16x32::Right>);
static_assert(is_sound<Mfma32x32x16::Left> && is_sound<Mfma32x32x16::Right>);
static_assert(is_sound<WmmaGfx11::Left> && is_sound<WmmaGfx11::Right> && is_sound<WmmaGfx11::Accumulator>);
static_assert(is_sound<WmmaGfx12::Left> && is_sound<WmmaGfx12::Right> && is_sound<WmmaGfx12::Accumulator>);
}  // namespace layouts

}  // namespace tilewright::kernel
