// The default strategy on recorded spaces of our own: exhaustive runs of attention on a CPU (tests/tuner/recorded/README.md).
#include <gmock/gmock.h>

#include <cstdio>

#include "tuner/replay.h"

namespace tilewright {
namespace {

class AttentionSpaces : public testing::TestWithParam<const char*> {};

TEST_P(AttentionSpaces, AreSearchedToWithinThreePercentInATenthOfTheirConfigs) {
    const std::string folder = std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/tuner/recorded/";
    const auto recorded = read_t4(folder + GetParam() + ".T4.json.gz", folder + GetParam() + ".T1.json");
    ASSERT_TRUE(recorded.ok()) << recorded.status().message();
    EXPECT_EQ(recorded->missing, 0u) << "the run was exhaustive";
    const int tenth = static_cast<int>(recorded->space.size() / 10);
    const auto result = simulate(*recorded, {.evaluations = tenth, .repeats = 100});
    ASSERT_TRUE(result.ok()) << result.status().message();
    ASSERT_EQ(result->rows.back().evaluations, tenth);
    std::printf("%d of %u configs: median %.3f, 10th percentile %.3f of the optimum\n", tenth, recorded->space.size(), result->rows.back().median, result->rows.back().p10);
    EXPECT_GE(result->rows.back().median, 1 / 1.03);
}
INSTANTIATE_TEST_SUITE_P(All, AttentionSpaces, testing::Values("dense", "window", "short_queries", "grouped_causal", "head_dim_128"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tilewright
