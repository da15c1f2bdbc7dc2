// Energy by a counter that moves in steps.
#include "tuner/energy.h"

#include <gmock/gmock.h>

#include <chrono>

namespace tilewright {
namespace {

// A device that takes 0.02 J a launch of 100 us beside 3 W all the time, and says so every 5 ms.
class SteppedCounter {
public:
    Sampler launches() {
        return [this](int count) -> Result<std::vector<double>> {
            for (int i = 0; i < count; ++i) {
                const auto until = Clock::now() + std::chrono::microseconds(100);
                while (Clock::now() < until) {}
                taken_ += 0.02;
            }
            return std::vector<double>(static_cast<size_t>(count), 100.0);
        };
    }
    double joules() {
        if (Clock::now() - read_ > std::chrono::milliseconds(5)) shown_ = taken_, read_ = Clock::now();
        return shown_;
    }

private:
    using Clock = std::chrono::steady_clock;
    double taken_ = 1000, shown_ = 1000;
    Clock::time_point read_ = Clock::now();
};

TEST(Energy, IsThatOfWholeStepsOfTheCounter) {
    SteppedCounter counter;
    const Result<double> joules = measure_energy(counter.launches(), [&] { return counter.joules(); }, {.seconds = 0.05, .batch_us = 300});
    ASSERT_TRUE(joules.ok()) << joules.status().message();
    EXPECT_NEAR(*joules, 0.02, 1e-9);
}

TEST(Energy, OfACounterThatStandsStillOrIsNotThereIsNotKnown) {
    const Sampler instant = [](int count) -> Result<std::vector<double>> { return std::vector<double>(static_cast<size_t>(count), 100.0); };
    EXPECT_THAT(measure_energy(instant, [] { return 7.0; }, {.seconds = 0.01, .patience = 0.02}).status().message(), testing::HasSubstr("stands still"));
    EXPECT_THAT(measure_energy(instant, [] { return -1.0; }).status().message(), testing::HasSubstr("does not say"));
    double falling = 1e9;
    EXPECT_THAT(measure_energy(instant, [&] { return falling -= 1; }, {.seconds = 0.001}).status().message(), testing::HasSubstr("went back"));
    const Sampler broken = [](int) -> Result<std::vector<double>> { return Status(StatusCode::runtime, "illegal address"); };
    EXPECT_EQ(measure_energy(broken, [] { return 7.0; }).status().message(), "illegal address");
}

}  // namespace
}  // namespace tilewright
