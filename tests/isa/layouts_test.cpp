// The layout tables of kernels/arch/layouts.h against the instructions as their manuals describe them.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "instructions.h"
#include "kernels/tile/accumulator.h"

namespace tilewright::kernel {
namespace {

// AMD's instructions are issued with A = right and B = left.
template <class L, class I, bool exchanged>
struct Row {
    using Layout = L;
    using Instruction = I;
    static constexpr bool is_exchanged = exchanged;
};

template <class R>
bool left_agrees(const Fragment& f) {
    using I = typename R::Instruction;
    constexpr int elements = R::is_exchanged ? I::b_elements : I::a_elements;
    if (f.lanes != I::lanes || f.elements != elements) return false;
    for (int lane = 0; lane < I::lanes; ++lane)
        for (int e = 0; e < elements; ++e) {
            Place p = place(f, lane, e);
            if constexpr (R::is_exchanged) {
                if (I::b(lane, e).j != p.row || I::b(lane, e).i != p.column) return false;
            } else if (I::a(lane, e).i != p.row || I::a(lane, e).j != p.column) {
                return false;
            }
        }
    return true;
}
template <class R>
bool right_agrees(const Fragment& f) {
    using I = typename R::Instruction;
    constexpr int elements = R::is_exchanged ? I::a_elements : I::b_elements;
    if (f.lanes != I::lanes || f.elements != elements) return false;
    for (int lane = 0; lane < I::lanes; ++lane)
        for (int e = 0; e < elements; ++e) {
            Place p = place(f, lane, e);
            isa::At at = R::is_exchanged ? isa::At{I::a(lane, e).j, I::a(lane, e).i} : I::b(lane, e);
            if (at.i != p.row || at.j != p.column) return false;
        }
    return true;
}
template <class R>
bool accumulator_agrees(const Fragment& f) {
    using I = typename R::Instruction;
    if (f.lanes != I::lanes || f.elements != I::d_elements) return false;
    for (int lane = 0; lane < I::lanes; ++lane)
        for (int e = 0; e < I::d_elements; ++e) {
            Place p = place(f, lane, e);
            isa::At at = I::d(lane, e);
            if ((R::is_exchanged ? at.j : at.i) != p.row || (R::is_exchanged ? at.i : at.j) != p.column) return false;
        }
    return true;
}

// Every table that differs in one used entry, one by one.
template <class Agrees>
void expect_that_every_entry_matters(const Fragment& f, Agrees&& agrees) {
    EXPECT_TRUE(agrees(f));
    for (int b = 0; b < 11; ++b) {
        if (b < 7 ? 1 << b >= f.lanes : 1 << (b - 7) >= f.elements) continue;
        for (int change : {1, 2, 3}) {
            Fragment broken = f;
            Place& p = b < 7 ? broken.lane_bits[b] : broken.element_bits[b - 7];
            if (p.row + p.column == 0 && change != 3) continue;  // exchanged or doubled, a copy's bit stays what it is
            if (change == 1) p = {p.column, p.row};
            if (change == 2) p = {p.row * 2, p.column * 2};
            if (change == 3) p.column += 1;
            EXPECT_FALSE(agrees(broken)) << "bit " << b << ", change " << change;
        }
    }
}

template <class R>
class LayoutTest : public testing::Test {};
using Rows = testing::Types<
    Row<layouts::MmaSync16x8x16, isa::MmaSync16x8x16, false>, Row<layouts::Wgmma64x8x16, isa::Wgmma64x8x16, false>,
    Row<layouts::Mfma16x16x16, isa::Mfma16x16x16, true>, Row<layouts::Mfma32x32x8, isa::Mfma32x32x8, true>,
    Row<layouts::Mfma16x16x32, isa::Mfma16x16x32, true>, Row<layouts::Mfma32x32x16, isa::Mfma32x32x16, true>,
    Row<layouts::WmmaGfx11, isa::WmmaGfx11, true>, Row<layouts::WmmaGfx12, isa::WmmaGfx12, true>>;
TYPED_TEST_SUITE(LayoutTest, Rows);

TYPED_TEST(LayoutTest, SizesAreTheInstructions) {
    using L = typename TypeParam::Layout;
    using I = typename TypeParam::Instruction;
    EXPECT_EQ(L::m, TypeParam::is_exchanged ? I::n : I::m);
    EXPECT_EQ(L::n, TypeParam::is_exchanged ? I::m : I::n);
    EXPECT_EQ(L::k, I::k);
}
TYPED_TEST(LayoutTest, EveryEntryOfTheLeftOperandAgreesWithTheManual) {
    expect_that_every_entry_matters(TypeParam::Layout::Left::table, left_agrees<TypeParam>);
}
TYPED_TEST(LayoutTest, EveryEntryOfTheRightOperandAgreesWithTheManual) {
    if constexpr (!TypeParam::Instruction::b_in_shared) expect_that_every_entry_matters(TypeParam::Layout::Right::table, right_agrees<TypeParam>);
}
TYPED_TEST(LayoutTest, EveryEntryOfTheAccumulatorAgreesWithTheManual) {
    expect_that_every_entry_matters(TypeParam::Layout::Accumulator::table, accumulator_agrees<TypeParam>);
}
// What device code computes by masks and shifts is what the table says, for several fragments side by side.
TYPED_TEST(LayoutTest, PositionsAreThoseOfTheTable) {
    using F = typename TypeParam::Layout::Accumulator;
    using P = Positions<F, 2, 2 * F::table.columns>;
    for (int lane = 0; lane < F::table.lanes; ++lane)
        for (int r = 0; r < P::rows; ++r)
            for (int c = 0; c < P::columns; ++c) {
                Place p = place(F::table, lane, P::element(r, c));
                EXPECT_EQ(P::row(lane, r), p.row + P::strip(r) * F::table.rows);
                EXPECT_EQ(P::column(lane, c), p.column + P::tile(c) * F::table.columns);
            }
}
// Exactly one of the lanes that share a row leads it.
TYPED_TEST(LayoutTest, EveryRowHasOneLeader) {
    using F = typename TypeParam::Layout::Accumulator;
    using P = Positions<F, 1, F::table.columns>;
    int leaders[64] = {};
    for (int lane = 0; lane < F::table.lanes; ++lane)
        for (int r = 0; r < P::rows; ++r) leaders[P::row(lane, r)] += P::leads_row(lane);
    for (int row = 0; row < F::table.rows; ++row) EXPECT_EQ(leaders[row], 1) << "row " << row;
}

// What layout.h concludes from bits, element by element.
bool covers_by_counting(const Fragment& f) {
    std::vector<int> held(size_t(f.rows * f.columns));
    for (int lane = 0; lane < f.lanes; ++lane)
        for (int e = 0; e < f.elements; ++e) {
            Place p = place(f, lane, e);
            if (p.row >= f.rows || p.column >= f.columns) return false;
            ++held[size_t(p.row * f.columns + p.column)];
        }
    return std::all_of(held.begin(), held.end(), [&](int n) { return n == copies(f); });
}
bool is_left_operand_by_going_through(const Fragment& accumulator, const Fragment& left) {
    if (accumulator.lanes != left.lanes) return false;
    for (int lane = 0; lane < left.lanes; ++lane)
        for (int e = 0; e < std::max(accumulator.elements, left.elements); ++e) {
            Place a = place(accumulator, lane, e % accumulator.elements), l = place(left, lane, e % left.elements);
            a.column += e / accumulator.elements * accumulator.columns, l.column += e / left.elements * left.columns;
            if (a.row != l.row || a.column != l.column) return false;
        }
    return true;
}
bool keeps_lanes_by_going_through(const Fragment& accumulator, const Fragment& left) {
    if (accumulator.lanes != left.lanes || copies(accumulator) != copies(left)) return false;
    if (accumulator.elements * left.columns != left.elements * accumulator.columns) return false;
    for (int lane = 0; lane < left.lanes; ++lane)
        for (int e = 0; e < std::max(accumulator.elements, left.elements); ++e)
            if (place(accumulator, lane, e % accumulator.elements).row != place(left, lane, e % left.elements).row) return false;
    return true;
}
bool agree_by_going_through(const Fragment& left, const Fragment& right) {
    if (left.lanes != right.lanes || left.elements != right.elements) return false;
    for (int lane = 0; lane < left.lanes; ++lane)
        for (int e = 0; e < left.elements; ++e)
            if (place(left, lane, e).column != place(right, lane, e).row) return false;
    return true;
}

template <class L>
void add_tables(std::vector<Fragment>& all) {
    all.push_back(L::Left::table), all.push_back(L::Accumulator::table);
    if constexpr (requires { L::Right::table; }) all.push_back(L::Right::table);
}
// All tables, and each with two of its bits exchanged.
std::vector<Fragment> tables_and_others() {
    using namespace layouts;
    std::vector<Fragment> all;
    add_tables<MmaSync16x8x16>(all), add_tables<Wgmma64x8x16>(all), add_tables<Mfma16x16x16>(all), add_tables<Mfma32x32x8>(all);
    add_tables<Mfma16x16x32>(all), add_tables<Mfma32x32x16>(all), add_tables<WmmaGfx11>(all), add_tables<WmmaGfx12>(all);
    for (size_t i = 0, tables = all.size(); i < tables; ++i)
        for (int b = 0; 1 << b < all[i].elements; ++b) {
            Fragment other = all[i];
            std::swap(other.element_bits[b], b % 2 ? other.lane_bits[b] : other.element_bits[0]);
            all.push_back(other);
            other.element_bits[b].column *= 2;
            all.push_back(other);
        }
    return all;
}
TEST(Layouts, ConcludeFromBitsWhatGoingThroughAllElementsWouldShow) {
    int covering = 0, operands = 0, keeping = 0, agreeing = 0;
    const std::vector<Fragment> all = tables_and_others();
    for (const Fragment& f : all) {
        if (!is_separable(f)) continue;
        EXPECT_EQ(covers(f), covers_by_counting(f));
        covering += covers(f);
        for (const Fragment& g : all) {
            if (!is_separable(g)) continue;
            EXPECT_EQ(accumulator_is_left_operand(f, g), is_left_operand_by_going_through(f, g));
            EXPECT_EQ(accumulator_keeps_lanes(f, g), keeps_lanes_by_going_through(f, g));
            EXPECT_EQ(operands_agree(f, g), agree_by_going_through(f, g));
            operands += accumulator_is_left_operand(f, g), keeping += accumulator_keeps_lanes(f, g), agreeing += operands_agree(f, g);
        }
    }
    EXPECT_GT(covering, 20);
    EXPECT_GT(operands, 5);
    EXPECT_GT(keeping, 5);
    EXPECT_GT(agreeing, 5);
}

TEST(Layouts, TellWhichAccumulatorsAreOperands) {
    using namespace layouts;
    EXPECT_TRUE(accumulator_is_left_operand(MmaSync16x8x16::Accumulator::table, MmaSync16x8x16::Left::table));
    EXPECT_TRUE(accumulator_is_left_operand(Wgmma64x8x16::Accumulator::table, Wgmma64x8x16::Left::table));
    EXPECT_TRUE(accumulator_is_left_operand(Mfma16x16x16::Accumulator::table, Mfma16x16x16::Left::table));
    EXPECT_TRUE(accumulator_is_left_operand(Mfma32x32x8::Accumulator::table, Mfma32x32x8::Left::table));
    EXPECT_TRUE(accumulator_is_left_operand(WmmaGfx12::Accumulator::table, WmmaGfx12::Left::table));
    EXPECT_FALSE(accumulator_is_left_operand(Mfma16x16x32::Accumulator::table, Mfma16x16x32::Left::table));
    EXPECT_TRUE(accumulator_keeps_lanes(Mfma16x16x32::Accumulator::table, Mfma16x16x32::Left::table));
    EXPECT_FALSE(accumulator_is_left_operand(Mfma32x32x16::Accumulator::table, Mfma32x32x16::Left::table));
    EXPECT_TRUE(accumulator_keeps_lanes(Mfma32x32x16::Accumulator::table, Mfma32x32x16::Left::table));
    EXPECT_FALSE(accumulator_keeps_lanes(WmmaGfx11::Accumulator::table, WmmaGfx11::Left::table));
}
TEST(Layouts, TellWhichLanesShareARow) {
    using namespace layouts;
    EXPECT_EQ(reduction_lanes(MmaSync16x8x16::Accumulator::table), 3);
    EXPECT_EQ(reduction_lanes(Wgmma64x8x16::Accumulator::table), 3);
    EXPECT_EQ(reduction_lanes(Mfma16x16x16::Accumulator::table), 48);
    EXPECT_EQ(reduction_lanes(Mfma32x32x8::Accumulator::table), 32);
    EXPECT_EQ(reduction_lanes(WmmaGfx11::Accumulator::table), 16);
    EXPECT_EQ(copies(WmmaGfx11::Left::table), 2);
}

}  // namespace
}  // namespace tilewright::kernel
