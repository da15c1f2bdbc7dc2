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
    size_t winner = 0;            // the lowest median among those that stayed to the end
    std::vector<size_t> ties;     // those that the winner is not surely faster than, the winner first
};
// Successive halving in turns, forwards and backwards (A B C C B A), so that a drift of clocks hits all alike: after each round those that are surely slower
// than the best leave, after a few rounds the slower half of those that are over one per cent behind leave too; the rest go on until all intervals are narrow
// or the budget ends. A racer whose sampler fails leaves with what it has. At least one racer; the error of the last one if all fail at once.
Result<RaceResult> race(const std::vector<Sampler>& samplers, const RaceOptions& options);

}  // namespace tilewright
