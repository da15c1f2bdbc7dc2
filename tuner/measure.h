// Measuring one kernel, or several against each other, on a noisy machine: as many launches as certainty needs and no more.
#pragma once
#include <functional>
#include <limits>
#include <vector>

#include "tilewright/status.h"

namespace tilewright {

struct Timing {
    double median_us = 0, p20_us = 0, p80_us = 0;
    double low_us = 0, high_us = 0;  // 95 % confidence interval of the median, from order statistics
    int samples = 0;
    double interval() const { return median_us > 0 ? (high_us - low_us) / median_us : 0; }
};
// Of at least one sample. With fewer than six the interval is all of them.
Timing summarize(std::vector<double> samples_us);

// Times so many launches one by one, in microseconds; everything between launches (flushes) is the callee's.
using Sampler = std::function<Result<std::vector<double>>(int launches)>;

struct MeasureOptions {
    double interval = 0.01;     // stop when the median's confidence interval is this part of it
    double budget_seconds = 2;  // or when the next launches would pass this
    int least_samples = 5;      // but not before these
    int most_samples = 1000;
    int most_warm_up = 8;                                         // rounds before the first sample
    double stable = 0.03;                                         // warm-up ends when two rounds agree so well
    double give_up_us = std::numeric_limits<double>::infinity();  // stop as soon as the median is surely above this
};
// The sampler's error, or a result of at least one sample.
Result<Timing> measure(const Sampler& sampler, const MeasureOptions& options);

struct RaceOptions {
    double interval = 0.01;
    double budget_seconds = 10;
    int samples_per_turn = 3;
};
struct RaceResult {
    std::vector<Timing> timings;  // of every racer, as far as it came
    size_t winner = 0;            // the fastest of those that stayed to the end, by laps of the same moment
    std::vector<size_t> ties;     // those that the winner is not surely faster than, the winner first
};
// Successive halving in laps, there and back (A B C C B A), compared lap by lap, so that a drift of clocks hits all alike. Those that are surely
// slower than the leader leave; every second lap the slower half of those more than one per cent behind leave too; the rest go on until it is known within
// `interval` how far they are behind, or the budget ends. A racer whose sampler fails leaves with what it has; the last failure is the error if nobody
// finishes.
Result<RaceResult> race(const std::vector<Sampler>& samplers, const RaceOptions& options);

}  // namespace tilewright
