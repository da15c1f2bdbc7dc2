// The backward by NVIDIA's arch headers, on the emulated multiprocessor, against the float64 reference: shapes, masks, variants, values that are
// hard, and orders in which warps run and copies land.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>

#include "backward_check.h"
#include "packed_backward.h"
#include "verify/check_backward.h"

namespace tilewright::emulated {

std::vector<EmulatedBackward> sm80_backward();
std::vector<EmulatedBackward> sm90_backward();
std::vector<EmulatedBackward> sm80_packed_backward();

namespace {

class NvidiaBackward : public testing::TestWithParam<EmulatedBackward> {
protected:
    static Workload workload(const std::string& sizes) { return make_workload(GetParam(), sizes); }
    static std::vector<Pass> passes() { return GetParam().passes(); }
    // Of several heads: the rule compares the largest errors, and that of one sink's gradient may be small by chance.
    static void expect_right(const std::string& sizes, const std::vector<int>& orders = {3}) {
        for (int order : orders) {
            Workload w = workload(sizes);
            expect_right_gradients(GetParam(), w, passes(), order);
        }
    }
};
std::string name_of(const testing::TestParamInfo<EmulatedBackward>& test) {
    std::string name = test.param.name;
    for (char& c : name)
        if (!std::isalnum((unsigned char)c)) c = '_';
    return name;
}
INSTANTIATE_TEST_SUITE_P(Sm80, NvidiaBackward, testing::ValuesIn(sm80_backward()), name_of);
INSTANTIATE_TEST_SUITE_P(Sm90, NvidiaBackward, testing::ValuesIn(sm90_backward()), name_of);

class NvidiaBackwardWithBias : public testing::TestWithParam<EmulatedBackward> {};
INSTANTIATE_TEST_SUITE_P(Sm80, NvidiaBackwardWithBias, testing::ValuesIn(with_bias(sm80_backward())), name_of);
TEST_P(NvidiaBackwardWithBias, SumsTheGradientOverWhatTheBiasIsBroadcastOver) { expect_right_sums_of_bias(GetParam()); }
TEST_P(NvidiaBackwardWithBias, WhatItHidesCannotMatter) { expect_hidden_by_bias_cannot_matter(GetParam()); }

TEST_P(NvidiaBackward, IsRightOnRaggedGroupedHeads) { expect_right("b2,hq8,hkv2,sq21,skv75", {0}); }
// Several tiles of rows and of columns for each of three blocks.
TEST_P(NvidiaBackward, IsRightInWhateverOrderWarpsRunAndCopiesLand) { expect_right("hq4,hkv2,sq140,skv150", {1, 2, 3}); }
TEST_P(NvidiaBackward, IsRightWhereThereIsLittle) {
    int order = 0;
    for (const char* sizes : {"b2,hq8,hkv2,sq1,skv1", "hq4,hkv2,sq2,skv0", "hq4,hkv2,sq0,skv2", "b2,hq4,hkv2,sq1,skv140", "hq4,hkv2,sq300,skv20", "hq4,hkv2,sq140,skv1"}) expect_right(sizes, {order++});
}
// Where log-sums are taken off before the scale multiplies, they are divided by it.
TEST_P(NvidiaBackward, IsRightWhateverTheScale) {
    for (float scale : {0.0f, -0.3f, 1e-20f}) {
        Workload w = workload("b2,hq4,hkv2,sq33,skv70");
        w.scale = scale;
        forward_results(w);
        expect_right_gradients(GetParam(), w, passes(), 2);
    }
}
TEST_P(NvidiaBackward, GivesTheSameBitsInTwoPassesOverKeysAndInEveryOrder) {
    Workload first = workload("hq4,hkv2,sq90,skv140"), second = first;
    expect_right_gradients(GetParam(), first, passes(), 0);
    bool apart = GetParam().name.find("sm80") == 0;
    expect_right_gradients(GetParam(), second, apart ? std::vector<Pass>{Pass::keys_alone, Pass::values_alone, Pass::queries} : passes(), 5);
    for (size_t i = 0; i < first.written().size(); ++i) {
        if (GetParam().dq == 1 && first.written()[i] == &first.query_gradient) continue;  // that is summed in any order
        EXPECT_EQ(first.elements(*first.written()[i]), second.elements(*second.written()[i]));
    }
}
TEST(NvidiaPackedBackward, IsThatOfEachSequenceAlone) {
    for (const EmulatedBackward& kernels : sm80_packed_backward()) expect_right_packed_backward(kernels);
}
TEST_P(NvidiaBackward, LetsNanAndInfinityReachWhatTheyMeetAndNothingElse) {
    for (int which = 0; which < 4; ++which) {
        Workload w = workload("hq4,hkv2,sq80,skv80");
        // With ALiBi near the first key: a probability that rounds to zero makes NaN of infinity.
        bool infinite = which % 2;
        w.set(which == 0 ? w.query : which == 1 ? w.key : which == 2 ? w.value : w.out_gradient, 0, 0, w.problem.alibi ? 3 : 40, 3, infinite ? double(INFINITY) : double(NAN));
        forward_results(w);
        expect_right_gradients(GetParam(), w, passes(), which);
    }
}

// A key whose scores are all minus infinity, or with a softcap all the lowest: no log-sum tells of it, and it meets queries in steps that hide
// it from some and in steps that do not, before and after one that does.
TEST_P(NvidiaBackward, LetsAnInfiniteKeyWithoutWeightReachTheQueriesThatSeeItAlone) {
    int order = 0;
    for (const char* sizes : {"hq2,hkv1,sq128,skv150", "hq2,hkv1,sq256,skv100"}) {  // queries that fill their blocks (docs/numerics.md)
        Workload w = workload(sizes);
        for (int64_t h = 0; h < 2; ++h)
            for (int64_t i = 0; i < w.problem.seq_q; ++i) w.set(w.query, 0, h, i, 3, -1);
        w.set(w.key, 0, 0, w.problem.alibi ? 3 : 50, 3, INFINITY);
        forward_results(w);
        expect_right_gradients(GetParam(), w, passes(), order += 2);
    }
}

}  // namespace
}  // namespace tilewright::emulated
