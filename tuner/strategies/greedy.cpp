// Greedy multi-start: from a random start to the first better neighbour, until none is better; then a new start.
#include <algorithm>

#include "tuner/strategies/strategies.h"

namespace tilewright {
namespace {

class Greedy : public Strategy {
public:
    explicit Greedy(const OptionValues& options) : start_samples_(static_cast<int>(options.at("start_samples"))), wide_(options.at("wide") != 0) {}

    std::optional<uint32_t> propose(const SearchHistory& history, Random& random) override {
        while (true) {
            if (samples_left_ > 0) {
                --samples_left_;
                return history.random_open(random);
            }
            while (!queue_.empty()) {
                const uint32_t next = queue_.back();
                queue_.pop_back();
                if (!history.proposed(next)) return next;
            }
            if (!widen(history, random)) restart();
        }
    }

    void learn(const SearchHistory& history, const SearchHistory::Trial& trial, Random& random) override {
        if (trial.cost >= current_cost_) return;
        current_ = trial.index;
        current_cost_ = trial.cost;
        level_ = 0;
        queue_.clear();
        // A neighbour that an earlier climb measured is free: step to it at once.
        for (const Neighbourhood kind : {Neighbourhood::step, Neighbourhood::one})
            for (const uint32_t neighbour : history.space().neighbours(current_, kind)) {
                const auto cost = history.cost(neighbour);
                if (cost && *cost < current_cost_) {
                    learn(history, {neighbour, *cost}, random);
                    return;
                }
            }
    }

private:
    // The next larger neighbourhood of the current configuration; false when all were looked at.
    bool widen(const SearchHistory& history, Random& random) {
        if (current_cost_ == failed_cost || level_ > (wide_ ? 2 : 1)) return false;
        static constexpr Neighbourhood levels[] = {Neighbourhood::step, Neighbourhood::one, Neighbourhood::pair_step};
        queue_ = history.space().neighbours(current_, levels[level_++]);
        for (size_t i = queue_.size(); i > 1; --i) std::swap(queue_[i - 1], queue_[random.below(static_cast<uint32_t>(i))]);
        return true;
    }
    void restart() {
        current_cost_ = failed_cost;
        level_ = 0;
        samples_left_ = start_samples_;
    }

    int start_samples_;
    bool wide_;
    int samples_left_ = 0;
    int level_ = 0;
    uint32_t current_ = 0;
    double current_cost_ = failed_cost;
    std::vector<uint32_t> queue_;
};

const StrategyOption options[] = {
    {"start_samples", 5, "random configurations per start; the best of them is climbed from"},
    {"wide", 1, "1: pairs of steps are tried before a restart"},
};

}  // namespace

const StrategyRow greedy_strategy = {"greedy", "climbs to the first better neighbour, from many random starts", options,
                                     [](const OptionValues& values) -> std::unique_ptr<Strategy> { return std::make_unique<Greedy>(values); }};

}  // namespace tilewright
