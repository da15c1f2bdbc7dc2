// The order of work on a device of several dies: every block of rows once, and a KV head's blocks on one die.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "kernels/tile/tile.h"

namespace tilewright::kernel {
namespace {

constexpr int dies = 8;

struct Shape {
    int blocks, kv_heads, sharers, section_heads;
    int heads() const { return kv_heads * sharers; }
    int all() const { return heads() * blocks; }
};
void PrintTo(const Shape& s, std::ostream* to) { *to << s.blocks << " blocks, " << s.kv_heads << " x " << s.sharers << " heads, sections of " << s.section_heads; }

class DieOrder : public testing::TestWithParam<Shape> {
protected:
    const Shape& s = GetParam();
    WorkOrder at(int index) const { return work_order<dies>(index, s.blocks, s.heads(), s.section_heads, s.sharers); }
    int own() const { return heads_of_die(s.heads(), dies, s.sharers); }
};
INSTANTIATE_TEST_SUITE_P(Shapes, DieOrder,
                         testing::Values(Shape{5, 16, 1, 16}, Shape{5, 16, 1, 1}, Shape{7, 16, 4, 4}, Shape{7, 16, 4, 64}, Shape{3, 21, 2, 4}, Shape{4, 3, 4, 12}, Shape{1, 8, 1, 1}, Shape{6, 1, 1, 1},
                                         Shape{2, 9, 3, 3}));

TEST_P(DieOrder, DoesEveryBlockOfEveryHeadOnce) {
    std::set<std::pair<int, int>> seen;
    for (int i = 0; i < s.all(); ++i) {
        WorkOrder order = at(i);
        ASSERT_GE(order.head, 0);
        ASSERT_LT(order.head, s.heads());
        ASSERT_GE(order.block, 0);
        ASSERT_LT(order.block, s.blocks);
        EXPECT_TRUE(seen.emplace(order.head, order.block).second) << "index " << i;
    }
}

// Blocks are dealt to the dies in turn: block i runs on die i % dies.
TEST_P(DieOrder, GivesKvHeadsToDiesAndAsManyToEach) {
    std::map<int, std::set<int>> dies_of;
    std::map<int, int> work;
    for (int i = 0; i < s.all(); ++i) dies_of[at(i).head / s.sharers].insert(i % dies), ++work[i % dies];
    for (int kv = 0; kv < own() * dies / s.sharers; ++kv) EXPECT_EQ(dies_of[kv].size(), 1u) << "KV head " << kv;
    EXPECT_LT(s.heads() - own() * dies, dies * s.sharers);  // left over
    for (int die = 0; die < dies; ++die) EXPECT_LE(std::abs(work[die] - s.all() / dies), 1) << "die " << die;
}

TEST_P(DieOrder, WalksTheHeadsOfADieBlockAfterBlock) {
    if (own() == 0) GTEST_SKIP() << "fewer KV heads than dies: the order of a single die";
    for (int die = 0; die < dies; ++die)
        for (int n = 0; n < own() * s.blocks; ++n) {
            WorkOrder plain(n, s.blocks, own(), s.section_heads), order = at(n * dies + die);
            EXPECT_EQ(order.head, die * own() + plain.head);
            EXPECT_EQ(order.block, plain.block);
        }
}

TEST_P(DieOrder, IsThatOfOneDieWhereThereIsOne) {
    for (int i = 0; i < s.all(); ++i) {
        WorkOrder plain(i, s.blocks, s.heads(), s.section_heads), order = work_order<1>(i, s.blocks, s.heads(), s.section_heads, s.sharers);
        EXPECT_EQ(order.head, plain.head);
        EXPECT_EQ(order.block, plain.block);
    }
}

template <Mask m>
struct MaskedConfig {
    static constexpr int block_q = 192, block_kv = 128, dies = 1;
    static constexpr bool packs_heads = true, packed = false;
    static constexpr Mask mask = m;
};
// Every row once; workers begin at whole multiples of their rows; and what a worker's part says of its KV tiles is true of each of its rows.
template <Mask mask>
void expect_each_row_once(int seq_q, int group) {
    using Config = MaskedConfig<mask>;
    constexpr int unit = 64;
    ForwardParameters p{};
    p.batch = 1, p.heads_kv = 2, p.heads_q = 2 * group, p.seq_q = seq_q, p.seq_kv = seq_q + 37, p.diagonal = 37, p.section_heads = 2 * group;
    p.window_left = mask == Mask::window ? 100 : 10000, p.window_right = mask == Mask::window ? 9 : 0;
    int rows = seq_q * group, blocks = (rows + Config::block_q - 1) / Config::block_q;
    std::map<std::pair<int, int>, int> seen;
    for (int i = 0; i < 2 * blocks; ++i) {
        Tile<Config> tile = tile_at<Config, unit>(p, place_at<Config, unit>(p, i));
        EXPECT_GT(tile.rows(), 0);
        EXPECT_EQ(tile.first_row % unit, 0);
        for (int row = 0; row < tile.rows(); ++row) {
            Tile<Config> own = tile.part(row / unit * unit, unit);
            ASSERT_TRUE(own.inside(row));
            ++seen[{tile.kv_head, tile.first_row + row}];
            int begin = own.visible_begin(row), end = own.visible_end(row);
            EXPECT_GE(begin, own.kv_begin * Config::block_kv);
            EXPECT_LE(end, (own.kv_end - 1) * Config::block_kv + own.last_keys);
            for (int kv = own.kv_begin; kv < own.kv_end; ++kv)
                EXPECT_TRUE(own.needs_mask(kv) || (begin <= kv * Config::block_kv && end >= (kv + 1) * Config::block_kv));
        }
    }
    EXPECT_EQ(seen.size(), size_t(2 * rows));
    for (const auto& [row, times] : seen) EXPECT_EQ(times, 1) << "KV head " << row.first << " row " << row.second;
}
TEST(ShortFirstBlock, LeavesNoRowOutAndDoesNoneTwice) {
    for (int seq_q : {1, 63, 64, 65, 191, 192, 193, 320, 500})
        for (int group : {1, 3}) {
            SCOPED_TRACE(testing::Message() << seq_q << " queries, groups of " << group);
            expect_each_row_once<Mask::causal>(seq_q, group);
            expect_each_row_once<Mask::window>(seq_q, group);
            expect_each_row_once<Mask::none>(seq_q, group);
        }
}
// 1024 rows in blocks of 192: the block of 64 sees few keys or many.
TEST(ShortFirstBlock, IsTheOneThatSeesLeastUnderAMask) {
    ForwardParameters p{};
    p.batch = p.heads_q = p.heads_kv = p.section_heads = 1, p.seq_q = p.seq_kv = 1024;
    auto first_row = [&](auto config, int index) { return place_at<decltype(config), 64>(p, index).first_row; };
    EXPECT_EQ(first_row(MaskedConfig<Mask::causal>(), 0), 832);
    EXPECT_EQ(first_row(MaskedConfig<Mask::causal>(), 4), 64);
    EXPECT_EQ(first_row(MaskedConfig<Mask::causal>(), 5), 0);
    EXPECT_EQ((tile_at<MaskedConfig<Mask::causal>, 64>(p, TilePlace<false>{}).rows()), 64);
    EXPECT_EQ(first_row(MaskedConfig<Mask::none>(), 5), 960);
    EXPECT_EQ((place_at<MaskedConfig<Mask::causal>>(p, 0).first_row), 960);
}

}  // namespace
}  // namespace tilewright::kernel
