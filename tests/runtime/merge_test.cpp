// Merging of attention states: answers by hand, empty rows, any grouping.
#include "tilewright/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tilewright {
namespace {

// Random states of `rows` rows over keys of its own.
struct State {
    std::vector<float> out, lse;
    AttentionState view() const { return {out.data(), lse.data()}; }
};
State random_state(unsigned seed, size_t rows, size_t columns) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    State state{std::vector<float>(rows * columns), std::vector<float>(rows)};
    for (float& x : state.out) x = normal(generator);
    for (float& x : state.lse) x = 4 * normal(generator);
    return state;
}
State merged(const std::vector<AttentionState>& states, size_t rows, size_t columns) {
    State result{std::vector<float>(rows * columns, NAN), std::vector<float>(rows, NAN)};
    EXPECT_TRUE(attention_merge(states, static_cast<int64_t>(rows), static_cast<int64_t>(columns), result.out.data(), result.lse.data()).ok());
    return result;
}

TEST(Merge, WeighsEightEqualKeysSplitSixAndTwo) {
    float first_lse = std::log(6.0f), second_lse = std::log(2.0f), first = 1, second = 5;
    State result = merged({{&first, &first_lse}, {&second, &second_lse}}, 1, 1);
    EXPECT_FLOAT_EQ(result.lse[0], std::log(8.0f));
    EXPECT_FLOAT_EQ(result.out[0], 0.75f * 1 + 0.25f * 5);
}

TEST(Merge, TakesTheEmptyStateAsIdentityWhateverItsOutHolds) {
    State state = random_state(1, 3, 5), empty{std::vector<float>(15, NAN), std::vector<float>(3, -INFINITY)};
    for (const std::vector<AttentionState>& order : {std::vector{empty.view(), state.view()}, std::vector{state.view(), empty.view()}}) {
        State result = merged(order, 3, 5);
        EXPECT_EQ(result.out, state.out);
        EXPECT_EQ(result.lse, state.lse);
    }
}

TEST(Merge, GivesAnEmptyRowForEmptyStatesAndForNone) {
    State empty{std::vector<float>(4), std::vector<float>(2, -INFINITY)};
    for (const std::vector<AttentionState>& states : {std::vector<AttentionState>{}, std::vector{empty.view(), empty.view()}}) {
        State result = merged(states, 2, 2);
        EXPECT_THAT(result.out, testing::Each(0.0f));
        EXPECT_THAT(result.lse, testing::Each(-INFINITY));
    }
}

TEST(Merge, IsAssociativeAndCommutativeWithinRounding) {
    State a = random_state(1, 7, 9), b = random_state(2, 7, 9), c = random_state(3, 7, 9);
    State ab = merged({a.view(), b.view()}, 7, 9), cb = merged({c.view(), b.view()}, 7, 9);
    State at_once = merged({a.view(), b.view(), c.view()}, 7, 9);
    for (const State& other : {merged({ab.view(), c.view()}, 7, 9), merged({a.view(), cb.view()}, 7, 9)}) {
        for (size_t i = 0; i < other.out.size(); ++i) EXPECT_NEAR(other.out[i], at_once.out[i], 1e-5f);
        for (size_t i = 0; i < other.lse.size(); ++i) EXPECT_NEAR(other.lse[i], at_once.lse[i], 1e-5f);
    }
}

TEST(Merge, KeepsRowsOfAnyMagnitude) {
    float low = -1e30f, high = 3e38f, lowest = -3e38f, one = 1, two = 2;
    EXPECT_FLOAT_EQ(merged({{&one, &low}, {&two, &low}}, 1, 1).out[0], 1.5f);
    EXPECT_FLOAT_EQ(merged({{&one, &high}, {&two, &lowest}}, 1, 1).out[0], 1.0f);
    EXPECT_FLOAT_EQ(merged({{&one, &high}, {&two, &lowest}}, 1, 1).lse[0], high);
}

TEST(Merge, ShowsNaNInItsOwnRowAlone) {
    std::vector<float> out{1, 2}, lse{NAN, 0};
    State result = merged({{out.data(), lse.data()}, {out.data(), lse.data()}}, 2, 1);
    EXPECT_TRUE(std::isnan(result.out[0]) && std::isnan(result.lse[0]));
    EXPECT_FLOAT_EQ(result.out[1], 2);
}

TEST(Merge, WorksInPlace) {
    State a = random_state(1, 3, 4), b = random_state(2, 3, 4), expected = merged({a.view(), b.view()}, 3, 4);
    std::vector<AttentionState> states{a.view(), b.view()};
    ASSERT_TRUE(attention_merge(states, 3, 4, a.out.data(), a.lse.data()).ok());
    EXPECT_EQ(a.out, expected.out);
    EXPECT_EQ(a.lse, expected.lse);
}

TEST(Merge, NamesWhatIsWrong) {
    float x = 0;
    std::vector<AttentionState> states{{&x, &x}, {&x, nullptr}};
    EXPECT_THAT(attention_merge(states, 1, 1, &x, &x).message(), testing::HasSubstr("state 1 of 2 has a null lse"));
    EXPECT_THAT(attention_merge(states, -1, 1, &x, &x).message(), testing::HasSubstr("rows is -1"));
    EXPECT_THAT(attention_merge(std::span(states).first(1), 1, 1, nullptr, &x).message(), testing::HasSubstr("out is null"));
}

}  // namespace
}  // namespace tilewright
