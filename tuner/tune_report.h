// What a report says about its trials: times, finalists, ties, totals, progress.
#pragma once
#include <vector>

#include "tuner/measure.h"
#include "tuner/strategy.h"
#include "tuner/tune.h"

namespace tilewright {

void set_timing(Measurement& measurement, const Timing& timing);
std::string host_name();  // empty if the system does not say

// The correct trials within 10 % of the best, fastest first, two at least if there are so many,
// `limit` at most. There is a best.
std::vector<size_t> finalists_of(const TuneReport& report, size_t limit);

// Among ties the one whose measured neighbours are fast too becomes the best and the first: it is the likelier to stay fast on another day and a
// similar problem. `indices` are the trials' places in the space.
void settle_ties(TuneReport& report, const SearchSpace& space, const SearchHistory& history, const std::vector<uint32_t>& indices);

// Counts outcomes, finds the worst and the median.
void summarize_trials(TuneReport& report);

// Where the run stands after `seconds`.
TuneProgress progress_of(const TuneReport& report, const TuneOptions& options, double seconds, bool racing);

}  // namespace tilewright
