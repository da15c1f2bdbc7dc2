// Measuring against clocks that are noisy, drift and warm up.
#include "tuner/measure.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "tuner/random.h"

namespace tilewright {
namespace {

// A kernel of `time_us` whose launches scatter by `noise` (relative, one-sided as on real machines) and start slow.
struct FakeKernel {
    double time_us, noise;
    int cold = 3;
    Random random{42};
    int launches = 0;
    Sampler sampler() {
        return [this](int count) -> Result<std::vector<double>> {
            std::vector<double> times;
            for (int i = 0; i < count; ++i, ++launches) times.push_back(time_us * (1 + noise * std::fabs(random.normal()) + (launches < cold ? 1.0 : 0.0)));
            return times;
        };
    }
};

TEST(Measure, ASteadyKernelNeedsFewLaunches) {
    FakeKernel kernel{100, 0.0005};
    const auto timing = measure(kernel.sampler(), {});
    ASSERT_TRUE(timing.ok());
    EXPECT_NEAR(timing->median_us, 100, 0.5);
    EXPECT_LT(kernel.launches, 60);
}

TEST(Measure, ANoisyKernelGetsMoreUntilItsIntervalIsNarrow) {
    FakeKernel kernel{100, 0.1};
    const auto timing = measure(kernel.sampler(), {});
    ASSERT_TRUE(timing.ok());
    EXPECT_GT(timing->samples, 50);
    EXPECT_LE(timing->interval(), 0.01);
}

TEST(Measure, TheWarmUpIsNotCounted) {
    FakeKernel kernel{100, 0.001, 6};
    const auto timing = measure(kernel.sampler(), {});
    ASSERT_TRUE(timing.ok());
    EXPECT_LT(timing->p80_us, 110);
}

TEST(Measure, StopsEarlyOnACandidateThatIsSurelyTooSlow) {
    FakeKernel kernel{200, 0.2};
    MeasureOptions options;
    options.give_up_us = 100;
    const auto timing = measure(kernel.sampler(), options);
    ASSERT_TRUE(timing.ok());
    EXPECT_LE(timing->samples, 6);
    EXPECT_GT(timing->median_us, 150);
}

TEST(Measure, PassesTheSamplersErrorOn) {
    const auto timing = measure([](int) -> Result<std::vector<double>> { return Status(StatusCode::runtime, "launch failed"); }, {});
    EXPECT_EQ(timing.status().message(), "launch failed");
}

TEST(Summary, OfKnownNumbers) {
    const Timing timing = summarize({5, 1, 4, 2, 3});
    EXPECT_EQ(timing.median_us, 3);
    EXPECT_EQ(timing.low_us, 1);  // five samples say little
    EXPECT_EQ(timing.high_us, 5);
    EXPECT_EQ(timing.samples, 5);
    EXPECT_EQ(summarize({1, 2}).median_us, 1.5);
}

TEST(Race, FindsTheFasterOfTwoUnderADriftLargerThanTheirDifference) {
    // Three launches of one slow the clock by 0.6 %; the kernels differ by 0.3 %, and the slower one begins.
    double clock = 1;
    const auto racer = [&](double time_us) -> Sampler {
        return [&, time_us](int count) -> Result<std::vector<double>> {
            std::vector<double> times;
            for (int i = 0; i < count; ++i) times.push_back(time_us * (clock += 0.002));
            std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that the budget ends the race
            return times;
        };
    };
    const auto result = race({racer(100.3), racer(100)}, {.budget_seconds = 0.06});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->winner, 1u);
}

TEST(Race, KeepsWhatCannotBeToldApartAsTies) {
    FakeKernel a{100, 0.05}, b{100, 0.05, 3, Random(7)}, c{150, 0.05};
    const auto result = race({a.sampler(), b.sampler(), c.sampler()}, {.budget_seconds = 0.3});
    ASSERT_TRUE(result.ok());
    EXPECT_THAT(result->ties, testing::UnorderedElementsAre(0, 1));
    EXPECT_LT(c.launches, a.launches / 4);  // the slow one left early
}

TEST(Race, GoesOnWithoutARacerThatFails) {
    FakeKernel good{100, 0.01};
    const Sampler bad = [](int) -> Result<std::vector<double>> { return Status(StatusCode::runtime, "gone"); };
    const auto result = race({bad, good.sampler()}, {.budget_seconds = 0.1});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->winner, 1u);
    EXPECT_EQ(race({bad}, {}).status().message(), "gone");
}

}  // namespace
}  // namespace tilewright
