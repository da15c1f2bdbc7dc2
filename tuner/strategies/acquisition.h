// What the strategies that learn a picture of the space have in common: where to begin, what to consider, what a gain is worth.
#pragma once
#include <cstdint>
#include <vector>

#include "tuner/strategy.h"

namespace tilewright {

// E[max(0, best - x)] for x normal: how much below the best so far a configuration is expected to come.
double expected_improvement(double best, double mean, double deviation);

// For the first evaluations: of some open configurations the one whose nearest proposed one is farthest; if there is a prior, three of
// four are its best.
uint32_t spread_proposal(const SearchHistory& history, Random& random);

// All trials, cheapest first; of more than `limit` the better half of that many and an even selection of the rest. A failure counts as
// the slowest success: a reason to look elsewhere, not a wall. At least one trial succeeded.
std::vector<SearchHistory::Trial> sorted_trials(const SearchHistory& history, size_t limit);

// Open configurations worth a look: the neighbours of the first `elite` of the sorted trials, and `random_count` at random.
std::vector<uint32_t> candidate_pool(const SearchHistory& history, const std::vector<SearchHistory::Trial>& sorted, size_t elite, size_t random_count,
                                     Random& random);

}  // namespace tilewright
