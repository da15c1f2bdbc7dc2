// From one step of the counter to another.
#include "tuner/energy.h"

#include <algorithm>
#include <chrono>

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Reading {
    double joules = 0;
    int64_t launches = 0;  // so far
};

}  // namespace

Result<double> measure_energy(const Sampler& launches, const std::function<double()>& joules, const EnergyOptions& options) {
    if (joules() < 0) return Status(StatusCode::unavailable, "the device does not say how much energy it takes");
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<double> first, launches(1));
    const int batch = static_cast<int>(std::clamp(options.batch_us / std::max(first[0], 1e-3), 1.0, 1000.0));
    int64_t launched = 0;
    const auto next_step = [&](double least_seconds) -> Result<Reading> {
        const Clock::time_point start = Clock::now();
        Clock::time_point moved = start;
        for (double last = joules();;) {
            TILEWRIGHT_RETURN_IF_ERROR(launches(batch).status());
            launched += batch;
            const double now = joules();
            if (now != last && seconds_since(start) >= least_seconds) return Reading{now, launched};
            if (now != last) last = now, moved = Clock::now();
            if (seconds_since(moved) > options.patience) return Status(StatusCode::unavailable, "the device's energy counter stands still");
        }
    };
    TILEWRIGHT_ASSIGN_OR_RETURN(const Reading begin, next_step(0));
    TILEWRIGHT_ASSIGN_OR_RETURN(const Reading end, next_step(options.seconds));
    if (!(end.joules > begin.joules)) return Status(StatusCode::unavailable, "the device's energy counter went back");
    return (end.joules - begin.joules) / static_cast<double>(end.launches - begin.launches);
}

}  // namespace tilewright
