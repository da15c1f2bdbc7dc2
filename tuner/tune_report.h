// What a report says about its trials: times, finalists, ties, totals, progress.
#pragma once
#include <vector>

#include "tuner/protocol.h"
#include "tuner/strategy.h"
#include "tuner/tune.h"

namespace tilewright {

void set_timing(Measurement& measurement, const Timing& timing);
// Lookups without conditions go by the places of races that were run for plain time.
inline bool is_plain(const TuneObjective& objective) { return objective.least == Quantity::time && objective.max_error <= 0; }
// What the worker knew of the device at the time.
void set_circumstances(Measurement& measurement, const WorkerReply& reply);
// Counts one more candidate, unless one of the two, blocks of each of its kernels, is not known.
void compare_occupancy(OccupancyAgreement& agreement, const Config& config, const std::vector<int>& by_model, const std::vector<int>& by_device);
int compile_jobs(const TuneOptions& options);  // compilers at the same time: as asked, or one per core
// A fraction of `legal` configs as a number, one at least; the lower of two limits counts.
TuneOptions with_counted_budget(TuneOptions options, int64_t legal);
std::string host_name();  // empty if the system does not say

// What is to be least: microseconds, or microjoules of a launch.
double cost(const TuneObjective& objective, const Measurement& measurement);
// Whether it may win.
bool counts(const TuneObjective& objective, const Measurement& measurement);

// The trials that may win within 10 % of the best, the best first, two at least if there are so many,
// `limit` at most. There is a best.
std::vector<size_t> finalists_of(const TuneReport& report, size_t limit);

// Among ties the one whose measured neighbours are fast too becomes the best and the first: it is the likelier to stay fast on another day and a
// similar problem. `indices` are the trials' places in the space.
void settle_ties(TuneReport& report, const SearchSpace& space, const SearchHistory& history, const std::vector<uint32_t>& indices);

// Counts outcomes, finds the worst, the median and the front.
void summarize_trials(TuneReport& report);

// Where the run stands after `seconds`.
TuneProgress progress_of(const TuneReport& report, const TuneOptions& options, double seconds, bool racing);

}  // namespace tilewright
