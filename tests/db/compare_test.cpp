// Devices compared by their databases.
#include <gmock/gmock.h>

#include "db/fixtures.h"
#include "db/tools/compare.h"

namespace tilewright {
namespace {

using namespace testing;  // NOLINT: the fixtures are tilewright::testing
using ::testing::HasSubstr;

using CompareTest = StoreTest;

TEST_F(CompareTest, winners_rates_and_portability_follow_from_the_measurements) {
    {
        Store a = open(StoreMode::create, "a.db"), b = open(StoreMode::create, "b.db");
        add(a, timed(100, 64), causal_1024(), toolchain(), device("A"));
        add(a, timed(200, 128), causal_1024(), toolchain(), device("A"));
        add(a, timed(10, 64), problem("forward:sq8"), toolchain(), device("A"));
        add(b, timed(400, 64), causal_1024(), toolchain(), device("B <fast>"));
        add(b, timed(300, 128), causal_1024(), toolchain(), device("B <fast>"));
        Measurement failed = timed(0, 64);
        failed.p20_us = failed.p80_us = 0;
        failed.outcome = Outcome::runtime;
        add(b, failed, problem("forward:sq8"), toolchain(), device("B <fast>"));
        add(b, timed(20, 32), problem("forward:sq8"), toolchain(), device("B <fast>"));
        add(b, timed(5, 32), problem("forward:sq9"), toolchain(), device("B <fast>"));
    }
    Result<Comparison> made = compare_databases({path("a.db"), path("b.db")});
    ASSERT_TRUE(made.ok()) << made.status().message();
    ASSERT_EQ(made->devices.size(), 2u);
    ASSERT_EQ(made->problems.size(), 3u);
    const ComparedProblem& first = made->problems[2];
    EXPECT_EQ(first.problem, causal_1024());
    EXPECT_EQ(first.winners[0]->median_us, 100);
    EXPECT_EQ(first.winners[1]->config.block_q, 128);
    EXPECT_NEAR(first.winners[0]->tflops, useful_flops(causal_1024()) / 100e-6 / 1e12, 1e-12);
    EXPECT_FALSE(made->problems[1].winners[0].has_value());
    const auto& matrix = made->portability;
    EXPECT_NEAR(matrix[0][0].fraction, 1, 1e-12);
    EXPECT_EQ(matrix[0][1].problems, 2);
    EXPECT_EQ(matrix[0][1].failed, 1);
    EXPECT_NEAR(matrix[0][1].fraction, std::sqrt(0.75 * 0.001), 1e-9) << "300 / 400, and one that does not run";
    EXPECT_EQ(matrix[1][0].problems, 1);
    EXPECT_NEAR(matrix[1][0].fraction, 0.5, 1e-12);
    made->problems[2].winners[0]->share_of_peak = 0.42;
    const std::string page = to_html(*made);
    EXPECT_THAT(page, HasSubstr("TFLOP/s<br>42 % of peak<br>64 x 64"));
    EXPECT_THAT(page, HasSubstr("B &lt;fast&gt;"));
    EXPECT_THAT(page, HasSubstr("128 x 64"));
}

TEST_F(CompareTest, a_file_that_cannot_be_read_is_an_error) {
    EXPECT_EQ(compare_databases({path("none.db")}).status().code(), StatusCode::not_found);
}

}  // namespace
}  // namespace tilewright
