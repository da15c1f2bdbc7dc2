// The backward by AMD's arch headers, on fibers, against the float64 reference: shapes, masks, variants and values that are hard.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>

#include "backward_check.h"
#include "verify/check_backward.h"

namespace tilewright::emulated {
namespace {

std::vector<EmulatedBackward> all_kernels() {
    std::vector<EmulatedBackward> all;
    for (auto* list : {cdna_backward, rdna3_backward, rdna4_backward})
        for (EmulatedBackward& k : list()) all.push_back(std::move(k));
    return all;
}

class AmdBackward : public testing::TestWithParam<EmulatedBackward> {
protected:
    static Workload workload(const std::string& sizes) { return make_workload(GetParam(), sizes); }
    static void expect_right(Workload& w, std::vector<Pass> passes = {Pass::keys, Pass::queries}, int order = 0) { expect_right_gradients(GetParam(), w, std::move(passes), order); }
    // Of several heads: the rule compares the largest errors, and that of one sink's gradient may be small by chance.
    static void expect_right(const std::string& sizes, int order = 0) {
        Workload w = workload(sizes);
        expect_right(w, {Pass::keys, Pass::queries}, order);
    }
};
class AmdBackwardWithBias : public testing::TestWithParam<EmulatedBackward> {};

std::string name_of(const testing::TestParamInfo<EmulatedBackward>& test) {
    std::string name = test.param.name;
    for (char& c : name)
        if (!std::isalnum((unsigned char)c)) c = '_';
    return name;
}
INSTANTIATE_TEST_SUITE_P(All, AmdBackward, testing::ValuesIn(all_kernels()), name_of);
INSTANTIATE_TEST_SUITE_P(All, AmdBackwardWithBias, testing::ValuesIn(with_bias(all_kernels())), name_of);

TEST_P(AmdBackward, IsRightOnRaggedGroupedHeads) { expect_right("b2,hq8,hkv2,sq21,skv75"); }
// Several tiles of rows and of columns, several waves: a missing barrier shows in one of the orders.
TEST_P(AmdBackward, IsRightInWhateverOrderWavesRun) {
    for (int order : {0, 1, 2}) expect_right("hq4,hkv2,sq90,skv70", order);
}
TEST_P(AmdBackward, IsRightWhereThereIsLittle) {
    for (const char* sizes : {"hq4,hkv2,sq1,skv1", "hq4,hkv2,sq2,skv0", "hq4,hkv2,sq0,skv2", "b2,hq8,hkv2,sq1,skv70", "hq8,hkv2,sq70,skv1"}) expect_right(sizes);
}
TEST_P(AmdBackward, GivesTheSameBitsInTwoPassesOverKeys) {
    Workload together = workload("hq8,hkv2,sq50,skv66"), apart = together;
    expect_right(together);
    expect_right(apart, {Pass::keys_alone, Pass::values_alone, Pass::queries});
    for (size_t i = 0; i < together.written().size(); ++i) EXPECT_EQ(together.elements(*together.written()[i]), apart.elements(*apart.written()[i]));
}
TEST_P(AmdBackwardWithBias, SumsTheGradientOverWhatTheBiasIsBroadcastOver) { expect_right_sums_of_bias(GetParam()); }
TEST_P(AmdBackwardWithBias, WhatItHidesCannotMatter) { expect_hidden_by_bias_cannot_matter(GetParam()); }
TEST_P(AmdBackward, LetsNanAndInfinityReachWhatTheyMeetAndNothingElse) {
    for (int which = 0; which < 4; ++which)
        for (double special : {double(NAN), double(INFINITY)}) {
            Workload w = workload("hq8,hkv4,sq80,skv80");
            // With ALiBi near the first key: a probability that rounds to zero makes NaN of infinity.
            w.set(which == 0 ? w.query : which == 1 ? w.key : which == 2 ? w.value : w.out_gradient, 0, 0, w.problem.alibi ? 3 : 40, 3, special);
            forward_results(w);
            expect_right(w);
        }
}

}  // namespace
}  // namespace tilewright::emulated
