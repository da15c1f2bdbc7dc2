// Simulated annealing: a walk over neighbours that also takes worse ones, less and less often, and starts again when cold.
#include <algorithm>
#include <cmath>

#include "tuner/strategies/strategies.h"

namespace tilewright {
namespace {

class Annealing : public Strategy {
public:
    explicit Annealing(const OptionValues& options) : hot_(options.at("hot")), cold_(options.at("cold")), cooling_(options.at("cooling")), temperature_(hot_) {}

    std::optional<uint32_t> propose(const SearchHistory& history, Random& random) override {
        while (current_cost_ < failed_cost && temperature_ > cold_) {
            auto moves = history.space().neighbours(current_, random.below(3) == 0 ? Neighbourhood::one : Neighbourhood::step);
            if (moves.empty()) break;
            const uint32_t move = moves[random.below(static_cast<uint32_t>(moves.size()))];
            if (!history.proposed(move)) return move;
            temperature_ *= cooling_;
            if (const auto cost = history.cost(move)) consider({move, *cost}, random);  // known: the walk goes over it for free
        }
        temperature_ = hot_;
        current_cost_ = failed_cost;
        return history.random_open(random);
    }

    void learn(const SearchHistory&, const SearchHistory::Trial& trial, Random& random) override {
        temperature_ *= cooling_;
        consider(trial, random);
    }

private:
    // Metropolis over the relative difference, so that the unit of cost does not matter.
    void consider(const SearchHistory::Trial& trial, Random& random) {
        if (trial.cost == failed_cost) return;
        const double rise = current_cost_ < failed_cost ? std::log(trial.cost / current_cost_) : -1;
        if (rise > 0 && random.uniform() >= std::exp(-rise / temperature_)) return;
        current_ = trial.index;
        current_cost_ = trial.cost;
    }

    double hot_, cold_, cooling_, temperature_;
    uint32_t current_ = 0;
    double current_cost_ = failed_cost;
};

const StrategyOption options[] = {
    {"hot", 0.5, "first temperature, in natural logarithms of cost"},
    {"cold", 0.005, "temperature at which the walk starts again elsewhere"},
    {"cooling", 0.96, "factor per evaluation"},
};

}  // namespace

const StrategyRow annealing_strategy = {"annealing", "walks over neighbours, worse ones less and less often", options,
                                        [](const OptionValues& values) -> std::unique_ptr<Strategy> { return std::make_unique<Annealing>(values); }};

}  // namespace tilewright
