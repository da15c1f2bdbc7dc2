// The AMD arch headers themselves, on fibers, against float64: shapes, masks, variants and values that are hard.
#include <gtest/gtest.h>

#include <cctype>

#include "cases.h"

namespace tilewright::emulated {

std::vector<EmulatedKernel> cdna_kernels();
std::vector<EmulatedKernel> rdna3_kernels();
std::vector<EmulatedKernel> rdna4_kernels();
std::vector<EmulatedKernel> materialized_kernels();

namespace {

using kernel::Mask;

std::vector<EmulatedKernel> all_kernels() {
    std::vector<EmulatedKernel> all;
    for (auto* list : {cdna_kernels, rdna3_kernels, rdna4_kernels, materialized_kernels})
        for (EmulatedKernel& k : list()) all.push_back(std::move(k));
    return all;
}
EmulatedKernel kernel_named(const std::string& name) {
    for (EmulatedKernel& k : all_kernels())
        if (k.name == name) return k;
    ADD_FAILURE() << "no kernel " << name;
    return {};
}

class AmdKernels : public testing::TestWithParam<EmulatedKernel> {
protected:
    void expect_right(Case c, const std::vector<int>& orders = {0}) {
        if (GetParam().mask == Mask::window && c.window_left < 0 && c.window_right < 0) c.window_left = 37, c.window_right = 6;
        if (GetParam().rescaled) c.scale_is_given = true, c.scale = -0.25f;
        EXPECT_EQ(check(GetParam(), c, orders), "") << c.name;
    }
};
INSTANTIATE_TEST_SUITE_P(All, AmdKernels, testing::ValuesIn(all_kernels()), [](const testing::TestParamInfo<EmulatedKernel>& test) {
    std::string name = test.param.name;
    for (char& c : name)
        if (!std::isalnum((unsigned char)c)) c = '_';
    return name;
});

TEST_P(AmdKernels, AreRightOnRaggedGroupedHeads) { expect_right({.name = "ragged", .batch = 2, .heads_q = 4, .heads_kv = 2, .seq_q = 21, .seq_kv = 75}); }
// Three KV tiles or more, several waves: a missing barrier shows in one of the orders.
TEST_P(AmdKernels, AreRightInWhateverOrderWavesRun) {
    expect_right({.name = "long", .seq_q = 70, .seq_kv = 200}, {0, 1, 2});
}
TEST_P(AmdKernels, AreRightWhereThereIsLittle) {
    expect_right({.name = "one and one", .seq_q = 1, .seq_kv = 1});
    expect_right({.name = "no keys", .seq_q = 2, .seq_kv = 0});
    expect_right({.name = "one query", .batch = 3, .heads_q = 4, .heads_kv = 2, .seq_q = 1, .seq_kv = 130});
}
TEST_P(AmdKernels, AreRightInBothAlignmentsAndInRowsThatSeeNothing) {
    expect_right({.name = "top left", .seq_q = 40, .seq_kv = 77, .top_left = true});
    expect_right({.name = "fewer keys", .seq_q = 77, .seq_kv = 40});
}
TEST_P(AmdKernels, AreRightForHighScoresAndLowOnes) {
    expect_right({.name = "high", .batch = 2, .heads_q = 4, .heads_kv = 2, .seq_q = 20, .seq_kv = 70, .magnitude = 60});
    expect_right({.name = "scale 0", .seq_q = 5, .seq_kv = 33, .scale_is_given = GetParam().softcap || GetParam().bias || GetParam().alibi, .scale = 0});
}
TEST_P(AmdKernels, LetNanAndInfinityReachTheRowsThatSeeThemAndNoOther) {
    expect_right({.name = "odd keys", .heads_q = 2, .heads_kv = 1, .seq_q = 40, .seq_kv = 70, .odd_keys = {33, 41, 44, 47, 58, 63, 64}});
    expect_right({.name = "last key", .seq_q = 70, .seq_kv = 70, .odd_keys = {61, 69}});
    expect_right({.name = "behind all rows", .seq_q = 30, .seq_kv = 90, .top_left = true, .odd_keys = {31, 36, 50, 89}});
}
TEST(AmdVariants, BiasOfInfinityHidesAndTheLowestFiniteOneDoesNot) {
    for (const char* name : {"wmma11 d21 dv13 variants", "wmma12 d5 variants"})
        EXPECT_EQ(check(kernel_named(name), {.name = name, .seq_q = 20, .seq_kv = 50, .scale_is_given = true, .lowest_bias = true}), "") << name;
}
// gfx90a's matrix unit takes fp16 probabilities below 2^-14 for zero: they must not get that small.
TEST(AmdVariants, SmallProbabilitiesCountOnGfx90a) {
    Case c{.name = "one key far above the others", .seq_q = 3, .seq_kv = 700, .dominant_key = 350, .dominance = 10.5f};
    EXPECT_EQ(check(kernel_named("gfx90a mfma16 d64 overlapped"), c), "");
    c.dominant_key = 699;
    EXPECT_EQ(check(kernel_named("gfx90a mfma16 d64 overlapped"), c), "");
}

}  // namespace
}  // namespace tilewright::emulated
