// The abstract search space: membership, neighbours, refusals.
#include "tuner/search_space.h"

#include <gmock/gmock.h>

#include "tuner/spaces.h"

namespace tilewright {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST(SearchSpace, FindsEveryLegalRowAndNoOther) {
    const SearchSpace& space = test::bowl().space;
    for (uint32_t index = 0; index < space.size(); ++index) EXPECT_EQ(space.find(space.row(index)), index);
    const uint16_t illegal[] = {11, 11, 0};
    EXPECT_FALSE(space.find(illegal));
}

SearchSpace line_with_a_gap() {  // 1, 2, (4 is not legal), 8 times an unordered switch of three
    std::vector<uint16_t> rows;
    for (const int x : {0, 1, 3})
        for (int mode = 0; mode < 3; ++mode) rows.insert(rows.end(), {static_cast<uint16_t>(x), static_cast<uint16_t>(mode)});
    return *SearchSpace::create({{"x", {"1", "2", "4", "8"}, {1, 2, 4, 8}}, {"mode", {"a", "b", "c"}, {}}}, rows);
}

TEST(SearchSpace, AStepGoesOverIllegalValuesAndToAnyValueWithoutOrder) {
    const SearchSpace space = line_with_a_gap();
    // Index 3 is (2, a): 0 is (1, a), 6 is (8, a), 4 and 5 are (2, b) and (2, c).
    EXPECT_THAT(space.neighbours(3, Neighbourhood::step), UnorderedElementsAre(0, 6, 4, 5));
    EXPECT_THAT(space.neighbours(0, Neighbourhood::step), UnorderedElementsAre(3, 1, 2));
    EXPECT_THAT(space.neighbours(0, Neighbourhood::one), UnorderedElementsAre(3, 6, 1, 2));
    EXPECT_THAT(space.neighbours(0, Neighbourhood::pair_step), UnorderedElementsAre());
}

TEST(SearchSpace, APairOfStepsMovesTwoOrderedParametersAtOnce) {
    const SearchSpace& space = test::bowl().space;
    const uint16_t corner[] = {0, 0, 1}, inner[] = {1, 1, 1};
    EXPECT_THAT(space.neighbours(*space.find(corner), Neighbourhood::pair_step), UnorderedElementsAre(*space.find(inner)));
}

TEST(SearchSpace, SaysWhatIsWrongWithAnInput) {
    const auto message = [](std::vector<SearchParameter> parameters, std::vector<uint16_t> rows, std::vector<double> prior = {},
                            std::vector<uint32_t> seeds = {}) {
        return SearchSpace::create(std::move(parameters), std::move(rows), std::move(prior), std::move(seeds)).status().message();
    };
    const SearchParameter x{"x", {"1", "2"}, {1, 2}};
    EXPECT_THAT(message({}, {}), HasSubstr("at least one parameter"));
    EXPECT_THAT(message({{"x", {}, {}}}, {}), HasSubstr("'x' has 0 values"));
    EXPECT_THAT(message({{"x", {"2", "1"}, {2, 1}}}, {}), HasSubstr("ascending"));
    EXPECT_THAT(message({x}, {2}), HasSubstr("value index 2 of parameter 'x', which has 2"));
    EXPECT_THAT(message({x}, {1, 1}), HasSubstr("configuration 1 is listed twice"));
    EXPECT_THAT(message({x, x}, {1}), HasSubstr("1 value indices do not divide into rows of 2"));
    EXPECT_THAT(message({x}, {0, 1}, {1}), HasSubstr("1 prior costs for 2"));
    EXPECT_THAT(message({x}, {0, 1}, {}, {2}), HasSubstr("seed 2 in a space of 2"));
}

TEST(SearchSpace, ProductsAreFeaturesWithOneRankForEqualValues) {
    const SearchSpace& space = test::bowl().space;
    const uint16_t a[] = {2, 5, 0}, b[] = {5, 2, 0}, c[] = {3, 5, 0};
    const auto product = [&](const uint16_t(&row)[3]) { return space.features(*space.find(row))[2]; };  // x, twos in x, x * y, ...
    EXPECT_EQ(product(a), product(b));
    EXPECT_LT(product(a), product(c));
}

}  // namespace
}  // namespace tilewright
