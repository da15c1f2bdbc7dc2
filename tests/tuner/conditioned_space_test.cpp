// Spaces from conditions and conditions from spaces.
#include "tuner/conditioned_space.h"

#include <gmock/gmock.h>

#include <chrono>

#include "tuner/spaces.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

SearchParameter numbers(const std::string& name, const std::vector<double>& values) {
    SearchParameter parameter{name, {}, values};
    for (const double value : values) parameter.labels.push_back(std::to_string(static_cast<int>(value)));
    return parameter;
}

TEST(ConditionedSpace, KeepsTheRowsThatFulfilEveryCondition) {
    const std::vector<SearchParameter> parameters = {numbers("x", {1, 2, 4}), {"mode", {"slow", "fast"}, {}}, numbers("y", {1, 3})};
    const auto rows = legal_rows(parameters, {{"x * y <= 6", {}}, {"mode == 'slow' or x > 1", {}}, {"x != 2", {}}});
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    // x = 1 slow with both y, x = 4 with y = 1.
    EXPECT_EQ(*rows, (std::vector<uint16_t>{0, 0, 0, 0, 0, 1, 2, 0, 0, 2, 1, 0}));
    EXPECT_EQ(legal_rows(parameters, {})->size(), 3 * 12u);
    EXPECT_EQ(legal_rows(parameters, {{"0", {}}})->size(), 0u);
}

TEST(ConditionedSpace, SaysWhichConditionAndValues) {
    const std::vector<SearchParameter> parameters = {numbers("x", {0, 1})};
    EXPECT_THAT(legal_rows(parameters, {{"1 // x == 1", {}}}).status().message(), testing::AllOf(HasSubstr("1 // x == 1"), HasSubstr("x = 0"), HasSubstr("division")));
    EXPECT_THAT(legal_rows(parameters, {{"z", {}}}).status().message(), HasSubstr("'z'"));
    EXPECT_FALSE(legal_rows({}, {}).ok());
}

TEST(ConditionedSpace, RefusesASpaceThatIsTooLarge) {
    std::vector<SearchParameter> parameters;
    for (int i = 0; i < 9; ++i) parameters.push_back(numbers(std::string(1, static_cast<char>('a' + i)), {1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_THAT(legal_rows(parameters, {}).status().message(), HasSubstr("more than"));
}

TEST(SpaceConditions, DescribeExactlyTheLegalRows) {
    const SearchSpace& space = test::bowl().space;  // the third parameter has no order: give it one
    std::vector<SearchParameter> parameters(space.parameters().begin(), space.parameters().end());
    parameters[2] = numbers("mode", {0, 1, 2});
    std::vector<uint16_t> legal;
    for (uint32_t index = 0; index < space.size(); ++index) {
        const auto row = space.row(index);
        if ((row[0] * 7 + row[1] * 3 + row[2]) % 5 == 0) continue;  // a rule of three parameters, on top of one of two
        legal.insert(legal.end(), row.begin(), row.end());
    }
    const SearchSpace odd = *SearchSpace::create(parameters, legal);
    const std::vector<SpaceCondition> conditions = conditions_of(odd);
    ASSERT_EQ(conditions.size(), 2u);
    EXPECT_THAT(conditions[0].parameters, testing::ElementsAre("x", "y"));
    const auto rows = legal_rows(parameters, conditions);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_EQ(*rows, legal);
}

TEST(SpaceConditions, OfAWholeProductAreNone) {
    const auto rows = legal_rows({numbers("x", {1, 2}), numbers("y", {1, 2, 3})}, {});
    EXPECT_TRUE(conditions_of(*SearchSpace::create({numbers("x", {1, 2}), numbers("y", {1, 2, 3})}, *rows)).empty());
}

TEST(SpaceConditions, ListWhatNoThreeParametersTell) {
    // Legal where the sum of four bits is even: every three of them have every value.
    std::vector<SearchParameter> parameters;
    std::vector<uint16_t> legal;
    for (const char* name : {"a", "b", "c", "d"}) parameters.push_back(numbers(name, {0, 1}));
    for (int bits = 0; bits < 16; ++bits)
        if (__builtin_popcount(static_cast<unsigned>(bits)) % 2 == 0)
            for (int i = 3; i >= 0; --i) legal.push_back(static_cast<uint16_t>(bits >> i & 1));
    const std::vector<SpaceCondition> conditions = conditions_of(*SearchSpace::create(parameters, legal));
    ASSERT_EQ(conditions.size(), 1u);
    EXPECT_EQ(*legal_rows(parameters, conditions), legal);
}

// docs/tuner.md says what was measured; the bound is the requirement.
TEST(ConditionedSpace, OfAHundredThousandConfigurationsWithSixConditionsIsBuiltInASecond) {
    const std::vector<SearchParameter> parameters = {numbers("block_x", {16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256}),
                                                     numbers("block_y", {1, 2, 4, 8, 16}),
                                                     numbers("tile_x", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
                                                     numbers("tile_y", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
                                                     numbers("unroll", {0, 1, 2, 4, 8, 16}),
                                                     numbers("stages", {1, 2, 3, 4}),
                                                     numbers("padding", {0, 1}),
                                                     numbers("vector", {1, 2, 4, 8})};
    const std::vector<SpaceCondition> conditions = {{"32 <= block_x * block_y <= 1024", {}},
                                                    {"padding == 0 or block_x % 32 != 0", {}},
                                                    {"(block_x * tile_x + 14) * (block_y * tile_y + 14) * stages <= 48 * 1024", {}},
                                                    {"unroll == 0 or tile_x * tile_y % unroll == 0", {}},
                                                    {"tile_x % vector == 0 or vector == 1", {}},
                                                    {"stages == 1 or block_x in [32, 64, 96, 128, 160, 192, 224, 256] or padding == 1", {}}};
    const auto start = std::chrono::steady_clock::now();
    auto rows = legal_rows(parameters, conditions);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    const auto space = SearchSpace::create(parameters, *std::move(rows));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_TRUE(space.ok()) << space.status().message();
    EXPECT_GE(space->size(), 100000u);
    EXPECT_LT(seconds, 1);
    RecordProperty("milliseconds", static_cast<int>(seconds * 1e3));
    std::printf("%u configurations in %.0f ms\n", space->size(), seconds * 1e3);
}

}  // namespace
}  // namespace tilewright
