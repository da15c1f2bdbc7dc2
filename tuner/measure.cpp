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

struct Racer {
    std::vector<double> samples;
    std::vector<double> laps;  // median of each
    Timing behind;             // its laps over the leader's of the same moment: 1 is as fast
    double surely_behind = 1;  // the lower end of a wide confidence interval of that
    bool failed = false;

    void finish_lap(const std::vector<double>& lap) {
        samples.insert(samples.end(), lap.begin(), lap.end());
        laps.push_back(summarize(lap).median_us);
    }
    // Asked after every lap, so at three standard deviations, not two; the fewer the laps, the wider the gap must be.
    bool surely_slower() const { return surely_behind > (laps.size() >= 9 ? 1 : laps.size() >= 4 ? 1.05 : laps.size() >= 2 ? 1.3 : 2); }
};

// Sorts the running racers, the fastest first, and says how far behind the first they are. Laps are compared with laps of the same
// moment, so that a clock that changes during the race changes nothing. All have run equally many.
void rank(std::vector<Racer>& racers, std::vector<size_t>& running) {
    if (running.empty()) return;
    const size_t laps = racers[running[0]].laps.size();
    std::vector<double> pace(laps, 0);  // logarithm of the mean of all, per lap
    for (const size_t index : running)
        for (size_t lap = 0; lap < laps; ++lap) pace[lap] += std::log(racers[index].laps[lap]) / static_cast<double>(running.size());
    std::vector<double> score(racers.size());
    for (const size_t index : running) {
        std::vector<double> relative;
        for (size_t lap = 0; lap < laps; ++lap) relative.push_back(racers[index].laps[lap] / std::exp(pace[lap]));
        score[index] = summarize(relative).median_us;
    }
    std::ranges::stable_sort(running, {}, [&](size_t index) { return score[index]; });
    const std::vector<double>& leader = racers[running[0]].laps;
    for (const size_t index : running) {
        std::vector<double> ratios;
        for (size_t lap = 0; lap < laps; ++lap) ratios.push_back(racers[index].laps[lap] / leader[lap]);
        racers[index].behind = summarize(ratios);
        std::ranges::sort(ratios);
        const auto count = static_cast<double>(laps);
        racers[index].surely_behind = ratios[static_cast<size_t>(std::max(0.0, std::floor(count / 2 - 1.5 * std::sqrt(count))))];
    }
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
    std::vector<Racer> racers(samplers.size());
    std::vector<size_t> running(samplers.size());
    std::iota(running.begin(), running.end(), size_t{0});
    std::vector<size_t> finished;  // who ran to the end, the fastest first
    Status failure;
    for (int lap = 0; !running.empty(); ++lap) {
        // There and back: over a lap every racer's turns lie around the same moment.
        std::vector<size_t> order = running;
        order.insert(order.end(), running.rbegin(), running.rend());
        std::vector<std::vector<double>> samples(racers.size());
        for (const size_t index : order) {
            if (racers[index].failed) continue;
            auto more = samplers[index](options.samples_per_turn);
            racers[index].failed = !more.ok();
            if (more.ok())
                samples[index].insert(samples[index].end(), more->begin(), more->end());
            else
                failure = more.status();
        }
        std::erase_if(running, [&](size_t index) { return racers[index].failed; });
        if (lap == 0) continue;  // warms up
        for (const size_t index : running) racers[index].finish_lap(samples[index]);
        rank(racers, running);
        if (running.empty()) break;
        finished = running;
        std::erase_if(running, [&](size_t index) { return racers[index].surely_slower(); });
        if (lap % 2 == 0)
            while (running.size() > 2 && racers[running.back()].behind.median_us > 1.01 && running.size() > (racers.size() >> (lap / 2))) running.pop_back();
        finished = running;
        const bool settled =
            std::ranges::all_of(running, [&](size_t index) { return racers[index].laps.size() >= 6 && racers[index].behind.interval() <= options.interval; });
        if ((settled && racers[running[0]].samples.size() >= 20) || watch.seconds() > options.budget_seconds) break;
    }
    if (finished.empty()) {
        if (failure.ok()) return Status(StatusCode::internal, "a race without laps");
        return failure;
    }
    RaceResult result;
    for (const Racer& racer : racers) result.timings.push_back(racer.samples.empty() ? Timing{} : summarize(racer.samples));
    result.winner = finished[0];
    for (const size_t index : finished)
        if (index == result.winner || racers[index].behind.low_us <= 1) result.ties.push_back(index);
    return result;
}

}  // namespace tilewright
