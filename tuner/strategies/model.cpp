// Model-guided: a prior ranking where there is one, corrected by a Gaussian process fitted to what was measured.
#include <algorithm>
#include <cmath>

#include "tuner/gaussian_process.h"
#include "tuner/strategies/acquisition.h"
#include "tuner/strategies/strategies.h"

namespace tilewright {
namespace {

using Trial = SearchHistory::Trial;

class Model : public Strategy {
public:
    explicit Model(const OptionValues& options)
        : first_(static_cast<size_t>(options.at("first"))),
          elite_(static_cast<size_t>(options.at("elite"))),
          pool_(static_cast<size_t>(options.at("pool"))),
          growth_(options.at("growth")),
          doubt_(options.at("doubt")),
          margin_(options.at("margin")) {}

    std::optional<uint32_t> propose(const SearchHistory& history, Random& random) override {
        const size_t proposed = history.space().size() - history.open().size();
        if (proposed < first_ || !history.best()) return spread_proposal(history, random);
        if (!process_ || history.trials().size() >= next_refresh_) refresh(history, random);
        std::optional<uint32_t> chosen = choose(history);
        if (!chosen) {
            refresh(history, random);
            chosen = choose(history);
        }
        return chosen;
    }

    void learn(const SearchHistory& history, const Trial& trial, Random&) override {
        if (!process_) return;
        if (history.best()->index == trial.index) next_refresh_ = 0;  // the neighbours of a new best are of interest
        process_->observe({trial.index, target(std::min(trial.cost, slowest_))});
    }

private:
    // Speed relative to the best so far, negative: near the best differences are large, among slow ones small.
    double target(double cost) const { return -reference_ / cost; }

    void refresh(const SearchHistory& history, Random& random) {
        const SearchSpace& space = history.space();
        if (!process_) process_.emplace(space);
        const std::vector<Trial> trials = sorted_trials(history, 160);
        reference_ = trials.front().cost;
        slowest_ = trials.back().cost;
        std::vector<CostSample> samples;
        for (const Trial& trial : trials) samples.push_back({trial.index, target(trial.cost)});
        if (history.trials().size() >= next_fit_) {
            std::vector<CostSample> some = samples;
            for (size_t i = some.size(); i > 1; --i) std::swap(some[i - 1], some[random.below(static_cast<uint32_t>(i))]);
            some.resize(std::min<size_t>(some.size(), 100));
            process_->fit(some, next_fit_ == 0 ? 30 : 10);
            next_fit_ = history.trials().size() * 5 / 4;
        }
        process_->observe(samples, candidate_pool(history, trials, elite_, pool_, random));
        next_refresh_ = history.trials().size() + std::max<size_t>(3, static_cast<size_t>(growth_ * static_cast<double>(history.trials().size())));
    }

    std::optional<uint32_t> choose(const SearchHistory& history) const {
        std::optional<uint32_t> chosen;
        double highest = -1;
        const double goal = -reference_ / history.best()->cost * (1 + margin_);
        for (size_t place = 0; place < process_->pool().size(); ++place) {
            const uint32_t index = process_->pool()[place];
            if (history.proposed(index)) continue;
            const double gain = expected_improvement(goal, process_->mean(place), doubt_ * process_->deviation(place));
            if (gain <= highest) continue;
            highest = gain;
            chosen = index;
        }
        return chosen;
    }

    size_t first_, elite_, pool_;
    double growth_, doubt_, margin_;
    std::optional<GaussianProcess> process_;
    size_t next_refresh_ = 0, next_fit_ = 0;
    double reference_ = 1, slowest_ = 1;
};

const StrategyOption options[] = {
    {"first", 12, "configurations spread over the space (and the prior's best) before the first fit"},
    {"elite", 12, "best configurations whose neighbours are always considered"},
    {"pool", 800, "random configurations considered beside those"},
    {"growth", 0.1, "the pool is drawn anew after so many evaluations, as a fraction of those made"},
    {"margin", 0.1, "improvement that is looked for: with 0 a search stays long on a plateau"},
    {"doubt", 1, "factor on the uncertainty: larger explores more"},
};

}  // namespace

const StrategyRow model_strategy = {"model", "a prior ranking corrected by a Gaussian process fitted to the measurements", options,
                                    [](const OptionValues& values) -> std::unique_ptr<Strategy> { return std::make_unique<Model>(values); }};

}  // namespace tilewright
