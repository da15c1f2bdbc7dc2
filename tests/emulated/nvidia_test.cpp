// NVIDIA's arch headers themselves, on the emulated multiprocessor, against float64: shapes, masks, variants, values that are hard, and orders in
// which warps run and copies land. A run also fails where a barrier is missing, whatever came out, and where no lane can go on.
#include <gtest/gtest.h>

#include <cctype>

#include "cases.h"
#include "packed.h"
#include "runtime/packed_call.h"

namespace tilewright::emulated {

std::vector<EmulatedKernel> sm80_kernels();
std::vector<EmulatedKernel> sm90_kernels();
std::vector<PackedKernel> sm80_packed_kernels();
std::vector<PackedKernel> sm90_packed_kernels();

namespace {

using kernel::Mask;

class NvidiaKernels : public testing::TestWithParam<EmulatedKernel> {
protected:
    void expect_right(Case c, const std::vector<int>& orders = {3}) {
        if (GetParam().mask == Mask::window && c.window_left < 0 && c.window_right < 0) c.window_left = 37, c.window_right = 6;
        if (GetParam().rescaled) c.scale_is_given = true, c.scale = -0.25f;
        EXPECT_EQ(check(GetParam(), c, orders), "") << c.name;
    }
};
std::string name_of(const testing::TestParamInfo<EmulatedKernel>& test) {
    std::string name = test.param.name;
    for (char& c : name)
        if (!std::isalnum((unsigned char)c)) c = '_';
    return name;
}
INSTANTIATE_TEST_SUITE_P(Sm80, NvidiaKernels, testing::ValuesIn(sm80_kernels()), name_of);
INSTANTIATE_TEST_SUITE_P(Sm90, NvidiaKernels, testing::ValuesIn(sm90_kernels()), name_of);

// Several tiles for each of three blocks, several KV tiles, all orders.
TEST_P(NvidiaKernels, AreRightInWhateverOrderWarpsRunAndCopiesLand) {
    expect_right({.name = "many tiles", .heads_q = 4, .heads_kv = 2, .seq_q = GetParam().block_q < 128 ? 110 : 260, .seq_kv = 190}, {0, 1, 2, 3, 4});
}
TEST_P(NvidiaKernels, AreRightOnRaggedGroupedHeads) { expect_right({.name = "ragged", .batch = 2, .heads_q = 4, .heads_kv = 2, .seq_q = 21, .seq_kv = 75}, {0, 4}); }
TEST_P(NvidiaKernels, AreRightWhereThereIsLittle) {
    expect_right({.name = "one and one", .seq_q = 1, .seq_kv = 1}, {1});
    expect_right({.name = "no keys", .heads_q = 9, .heads_kv = 3, .seq_q = 2, .seq_kv = 0}, {0, 3});
    expect_right({.name = "one query", .batch = 3, .heads_q = 4, .heads_kv = 2, .seq_q = 1, .seq_kv = 130}, {5});
}
TEST_P(NvidiaKernels, AreRightInBothAlignmentsAndInRowsThatSeeNothing) {
    expect_right({.name = "top left", .heads_q = 2, .seq_q = 90, .seq_kv = 137, .top_left = true}, {6});
    // Under a causal mask all queries but the last 40 see nothing: whole tiles are empty, among others that are not.
    expect_right({.name = "fewer keys", .heads_q = 2, .seq_q = GetParam().block_q < 128 ? 150 : 400, .seq_kv = 40}, {0, 1, 7});
}
TEST_P(NvidiaKernels, AreRightForHighScoresAndLowOnes) {
    expect_right({.name = "high", .batch = 2, .heads_q = 4, .heads_kv = 2, .seq_q = 20, .seq_kv = 70, .magnitude = 60});
    // Maxima move from one KV tile to the next, also after a tile of which half was computed.
    expect_right({.name = "high, several tiles", .heads_q = 2, .seq_q = 140, .seq_kv = 230, .magnitude = 60});
    expect_right({.name = "scale 0", .seq_q = 5, .seq_kv = 33, .scale_is_given = GetParam().softcap || GetParam().bias || GetParam().alibi, .scale = 0});
}
TEST_P(NvidiaKernels, LetNanAndInfinityReachTheRowsThatSeeThemAndNoOther) {
    expect_right({.name = "odd keys", .heads_q = 4, .heads_kv = 1, .seq_q = 140, .seq_kv = 170, .odd_keys = {33, 41, 44, 47, 58, 63, 64, 131}}, {0, 1, 3});
    expect_right({.name = "last key", .seq_q = 70, .seq_kv = 70, .odd_keys = {61, 69}}, {5});
    expect_right({.name = "behind all rows", .seq_q = 30, .seq_kv = 90, .top_left = true, .odd_keys = {31, 36, 50, 89}}, {6});
}

std::vector<PackedKernel> packed_kernels() {
    std::vector<PackedKernel> all = sm80_packed_kernels();
    for (const PackedKernel& kernel : sm90_packed_kernels()) all.push_back(kernel);
    return all;
}
TEST(NvidiaPacked, IsRightForRandomLengths) {
    std::mt19937 random(3);
    for (const PackedKernel& kernel : packed_kernels())
        for (unsigned seed = 1; seed <= 4; ++seed)
            expect_right(kernel, PackedCall(kernel.problem, random_lengths(random, 4, 150), random_lengths(random, 4, 160), seed), static_cast<int>(seed - 1));
}
TEST(NvidiaPacked, NanInOneSequenceReachesNoOther) {
    for (const PackedKernel& kernel : packed_kernels())
        for (int order : {0, 3}) expect_right(kernel, PackedCall(kernel.problem, {20, 9, 33, 0, 70}, {31, 40, 20, 9, 0}, 2, 1), order, 1);
}

}  // namespace
}  // namespace tilewright::emulated
