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

}  // namespace
}  // namespace tilewright::kernel
