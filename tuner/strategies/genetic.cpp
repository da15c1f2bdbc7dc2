// Genetic: parents by tournament, uniform crossover, mutation to a near value, elitist steady-state population.
#include <algorithm>

#include "tuner/strategies/strategies.h"

namespace tilewright {
namespace {

class Genetic : public Strategy {
public:
    explicit Genetic(const OptionValues& options)
        : population_size_(std::max<size_t>(2, static_cast<size_t>(options.at("population")))), mutation_(options.at("mutation")) {}

    std::optional<uint32_t> propose(const SearchHistory& history, Random& random) override {
        if (population_.size() < population_size_) return history.random_open(random);
        for (int attempt = 0; attempt < 50; ++attempt) {
            const auto child = breed(history.space(), random);
            const auto index = history.space().find(child);
            if (index && !history.proposed(*index)) return index;
        }
        // The population has converged: keep its best, let in new blood.
        population_.resize(1);
        return history.random_open(random);
    }

    void learn(const SearchHistory&, const SearchHistory::Trial& trial, Random&) override {
        const auto place = std::ranges::upper_bound(population_, trial.cost, {}, &SearchHistory::Trial::cost);
        population_.insert(place, trial);
        if (population_.size() > population_size_) population_.pop_back();
    }

private:
    const SearchHistory::Trial& tournament(Random& random) const {  // the population is sorted: the lower place wins
        const auto count = static_cast<uint32_t>(population_.size());
        return population_[std::min(random.below(count), random.below(count))];
    }

    std::vector<uint16_t> breed(const SearchSpace& space, Random& random) const {
        const auto first = space.row(tournament(random).index), second = space.row(tournament(random).index);
        std::vector<uint16_t> child(first.begin(), first.end());
        for (size_t i = 0; i < child.size(); ++i) {
            if (random.below(2) != 0) child[i] = second[i];
            if (random.uniform() >= mutation_) continue;
            const auto count = static_cast<int>(space.parameters()[i].labels.size());
            if (space.parameters()[i].positions.empty() || random.below(2) != 0)
                child[i] = static_cast<uint16_t>(random.below(static_cast<uint32_t>(count)));
            else
                child[i] = static_cast<uint16_t>(std::clamp(child[i] + (random.below(2) != 0 ? 1 : -1), 0, count - 1));
        }
        return child;
    }

    size_t population_size_;
    double mutation_;
    std::vector<SearchHistory::Trial> population_;  // best first
};

const StrategyOption options[] = {
    {"population", 20, "configurations that breed"},
    {"mutation", 0.15, "chance of each parameter to change by itself"},
};

}  // namespace

const StrategyRow genetic_strategy = {"genetic", "crosses and mutates the best configurations so far", options,
                                      [](const OptionValues& values) -> std::unique_ptr<Strategy> { return std::make_unique<Genetic>(values); }};

}  // namespace tilewright
