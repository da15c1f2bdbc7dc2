// The default strategy on recorded spaces of real GPUs, which are not part of this repository: the folder is $TILEWRIGHT_SEARCH_SPACES or
// shared/data/search_spaces beside the checkout; without it these tests are skipped.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "tuner/replay.h"

namespace tilewright {
namespace {

class RecordedSpaces : public testing::TestWithParam<const char*> {};

TEST_P(RecordedSpaces, AreSearchedToTheirOptimumInTwoHundredEvaluations) {
    const char* given = std::getenv("TILEWRIGHT_SEARCH_SPACES");
    const std::string folder = given != nullptr ? given : std::string(TILEWRIGHT_SOURCE_DIR) + "/../shared/data/search_spaces";
    const std::string path = folder + "/convolution_" + GetParam() + ".T4.json.gz";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no recorded space at " << path << ": set TILEWRIGHT_SEARCH_SPACES";
    const auto recorded = read_t4(path);
    ASSERT_TRUE(recorded.ok()) << recorded.status().message();
    EXPECT_EQ(recorded->space.size(), 4362u);
    const auto result = simulate(*recorded, {.evaluations = 200, .repeats = 100});
    ASSERT_TRUE(result.ok()) << result.status().message();
    ASSERT_EQ(result->rows[2].evaluations, 100);
    EXPECT_GE(result->rows[2].median, 0.97);
    EXPECT_GE(result->rows[2].p10, 0.85);
    EXPECT_GE(result->rows.back().median, 0.99);
    EXPECT_GE(result->rows.back().p10, 0.93);
}
TEST_P(RecordedSpaces, AreWhatTheirT1FileSays) {
    const char* given = std::getenv("TILEWRIGHT_SEARCH_SPACES");
    const std::string folder = given != nullptr ? given : std::string(TILEWRIGHT_SOURCE_DIR) + "/../shared/data/search_spaces";
    const std::string path = folder + "/convolution_" + GetParam() + ".T4.json.gz", t1 = folder + "/convolution.T1.json";
    if (!std::filesystem::exists(path) || !std::filesystem::exists(t1)) GTEST_SKIP() << "no recorded space at " << path << ": set TILEWRIGHT_SEARCH_SPACES";
    const auto alone = read_t4(path), with_space = read_t4(path, t1);
    ASSERT_TRUE(alone.ok() && with_space.ok()) << with_space.status().message();
    EXPECT_EQ(with_space->missing, 0u);
    EXPECT_THAT(with_space->costs, testing::UnorderedElementsAreArray(alone->costs));
}
INSTANTIATE_TEST_SUITE_P(All, RecordedSpaces, testing::Values("A100", "MI250X", "W7800"), [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tilewright
