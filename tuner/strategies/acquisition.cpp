// Beginnings, candidate pools and expected improvement of the learning strategies.
#include "tuner/strategies/acquisition.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_set>

namespace tilewright {
namespace {

using Trial = SearchHistory::Trial;

double distance(const SearchSpace& space, uint32_t a, uint32_t b) {
    const auto first = space.row(a), second = space.row(b);
    double sum = 0;
    for (size_t i = 0; i < first.size(); ++i) {
        const SearchParameter& parameter = space.parameters()[i];
        if (first[i] == second[i]) continue;
        sum += parameter.positions.empty() ? 1 : std::abs(first[i] - second[i]) / static_cast<double>(parameter.labels.size() - 1);
    }
    return sum;
}

}  // namespace

double expected_improvement(double best, double mean, double deviation) {
    const double z = (best - mean) / deviation;
    const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
    const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
    return deviation * (z * below + density);
}

uint32_t spread_proposal(const SearchHistory& history, Random& random) {
    const SearchSpace& space = history.space();
    const size_t turn = space.size() - history.open().size();
    if (!space.prior().empty() && turn % 4 != 3)
        return *std::ranges::min_element(
            history.open(), [&](uint32_t a, uint32_t b) { return space.prior()[a] != space.prior()[b] ? space.prior()[a] < space.prior()[b] : a < b; });
    uint32_t chosen = history.random_open(random);
    double farthest = -1;
    for (int attempt = 0; attempt < 32; ++attempt) {
        const uint32_t index = history.random_open(random);
        double nearest = std::numeric_limits<double>::max();
        for (const Trial& trial : history.trials()) nearest = std::min(nearest, distance(space, index, trial.index));
        if (nearest > farthest) {
            farthest = nearest;
            chosen = index;
        }
    }
    return chosen;
}

std::vector<Trial> sorted_trials(const SearchHistory& history, size_t limit) {
    std::vector<Trial> trials(history.trials().begin(), history.trials().end());
    std::ranges::stable_sort(trials, {}, &Trial::cost);
    double slowest = trials[0].cost;
    for (Trial& trial : trials) {
        if (trial.cost < failed_cost) slowest = trial.cost;
        trial.cost = slowest;
    }
    if (trials.size() <= limit) return trials;
    const size_t half = limit / 2;
    std::vector<Trial> kept(trials.begin(), trials.begin() + static_cast<ptrdiff_t>(half));
    for (size_t i = 0; i < limit - half; ++i) kept.push_back(trials[half + i * (trials.size() - half) / (limit - half)]);
    return kept;
}

std::vector<uint32_t> candidate_pool(const SearchHistory& history, const std::vector<Trial>& sorted, size_t elite, size_t random_count, Random& random) {
    std::unordered_set<uint32_t> seen;
    std::vector<uint32_t> pool;
    const auto consider = [&](uint32_t index) {
        if (!history.proposed(index) && seen.insert(index).second) pool.push_back(index);
    };
    for (size_t i = 0; i < std::min(elite, sorted.size()); ++i)
        for (const Neighbourhood kind : {Neighbourhood::one, Neighbourhood::pair_step})
            for (const uint32_t index : history.space().neighbours(sorted[i].index, kind)) consider(index);
    for (size_t i = 0; i < random_count && !history.open().empty(); ++i) consider(history.random_open(random));
    return pool;
}

}  // namespace tilewright
