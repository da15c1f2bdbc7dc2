// Warm-up, adaptive repeats and races.
#include "tuner/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace tilewright {
namespace {

class Stopwatch {
public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double median_of(std::vector<double> values) {
    const size_t middle = values.size() / 2;
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(middle), values.end());
    return values[middle];
}

// Launches until two rounds agree; gives the cost of one launch in wall seconds, flushes included.
Result<double> warm_up(const Sampler& sampler, const MeasureOptions& options, const Stopwatch& watch) {
    double before = 0, per_launch = 0;
    int launches = 1;
    for (int round = 0; round < options.most_warm_up; ++round) {
        const double start = watch.seconds();
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<double> times, sampler(launches));
        per_launch = (watch.seconds() - start) / launches;
        const double now = median_of(times);
        if (round > 0 && std::fabs(now - before) <= options.stable * now) break;
        if (watch.seconds() > options.budget_seconds / 4 || now > options.give_up_us * 4) break;
        before = now;
        launches = std::clamp(static_cast<int>(options.budget_seconds / 32 / std::max(per_launch, 1e-9)), 1, 10);
    }
    return per_launch;
}

}  // namespace

Timing summarize(std::vector<double> samples) {
    std::ranges::sort(samples);
    const size_t count = samples.size();
    const auto at = [&](double fraction) { return samples[static_cast<size_t>(std::lround(fraction * static_cast<double>(count - 1)))]; };
    const double half = count % 2 != 0 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
    // The ranks between which the median lies with 95 %: the binomial distribution's, as a normal one.
    const double middle = static_cast<double>(count) / 2, reach = 0.98 * std::sqrt(static_cast<double>(count));
    const auto low = static_cast<size_t>(std::max(0.0, std::floor(middle - reach))), high = std::min(count - 1, static_cast<size_t>(std::ceil(middle + reach)));
    const bool few = count < 6;
    return {half, at(0.2), at(0.8), few ? samples.front() : samples[low], few ? samples.back() : samples[high], static_cast<int>(count)};
}

Result<Timing> measure(const Sampler& sampler, const MeasureOptions& options) {
    const Stopwatch watch;
    TILEWRIGHT_ASSIGN_OR_RETURN(const double per_launch, warm_up(sampler, options, watch));
    std::vector<double> samples;
    Timing timing;
    while (static_cast<int>(samples.size()) < options.most_samples) {
        const auto have = static_cast<int>(samples.size());
        const double left = options.budget_seconds - watch.seconds();
        const int affordable = static_cast<int>(std::clamp(left / std::max(per_launch, 1e-9), 0.0, 1e6));
        if (have > 0 && affordable < 1) break;
        const int wanted = std::min({have == 0 ? options.least_samples : std::max(2, have / 2), std::max(affordable, 1), options.most_samples - have});
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<double> more, sampler(wanted));
        samples.insert(samples.end(), more.begin(), more.end());
        timing = summarize(samples);
        if (timing.low_us > options.give_up_us) break;
        if (timing.samples >= options.least_samples && timing.samples >= 6 && timing.interval() <= options.interval) break;
    }
    return timing;
}

Result<RaceResult> race(const std::vector<Sampler>& samplers, const RaceOptions& options) {
    if (samplers.empty()) return invalid_argument("a race needs at least one racer");
    const Stopwatch watch;
    RaceResult result;
    result.timings.resize(samplers.size());
    std::vector<std::vector<double>> samples(samplers.size());
    std::vector<size_t> running(samplers.size());
    std::iota(running.begin(), running.end(), size_t{0});
    const auto faster = [&](size_t a, size_t b) { return result.timings[a].median_us < result.timings[b].median_us; };
    Status failure;
    for (int round = 0; !running.empty(); ++round) {
        std::vector<size_t> failed;
        std::vector<size_t> order = running;
        if (round % 2 != 0) std::ranges::reverse(order);
        for (const size_t racer : order) {
            auto more = samplers[racer](options.samples_per_turn);
            if (!more.ok()) {
                failure = more.status();
                failed.push_back(racer);
                continue;
            }
            // The first turn warms up.
            if (round > 0 || samplers.size() == 1) samples[racer].insert(samples[racer].end(), more->begin(), more->end());
        }
        std::erase_if(running, [&](size_t racer) { return std::ranges::find(failed, racer) != failed.end(); });
        if (running.empty()) break;
        if (samples[running[0]].empty()) continue;
        for (const size_t racer : running) result.timings[racer] = summarize(samples[racer]);
        std::ranges::stable_sort(running, faster);
        const Timing& best = result.timings[running[0]];
        std::erase_if(running, [&](size_t racer) { return result.timings[racer].samples >= 6 && result.timings[racer].low_us > best.high_us; });
        if (round % 4 == 0)
            while (running.size() > 2 && result.timings[running.back()].median_us > 1.01 * best.median_us && running.size() > (samplers.size() >> (round / 4)))
                running.pop_back();
        const bool settled = std::ranges::all_of(
            running, [&](size_t racer) { return result.timings[racer].samples >= 6 && result.timings[racer].interval() <= options.interval; });
        if (settled || watch.seconds() > options.budget_seconds) break;
    }
    std::erase_if(running, [&](size_t racer) { return samples[racer].empty(); });
    if (running.empty()) {
        for (size_t racer = 0; racer < samples.size(); ++racer)
            if (!samples[racer].empty()) running.push_back(racer);
        if (running.empty()) return failure;
        std::ranges::stable_sort(running, faster);
    }
    result.winner = running[0];
    for (const size_t racer : running)
        if (racer == result.winner || result.timings[racer].low_us <= result.timings[result.winner].high_us) result.ties.push_back(racer);
    return result;
}

}  // namespace tilewright
