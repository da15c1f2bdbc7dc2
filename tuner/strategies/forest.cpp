// Forest-guided: a regression forest fitted to what was measured says where an improvement is most to be expected.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "tuner/forest.h"
#include "tuner/strategies/acquisition.h"
#include "tuner/strategies/strategies.h"

namespace tilewright {
namespace {

using Trial = SearchHistory::Trial;

class ForestSearch : public Strategy {
public:
    explicit ForestSearch(const OptionValues& options)
        : first_(static_cast<size_t>(options.at("first"))),
          elite_(static_cast<size_t>(options.at("elite"))),
          pool_(static_cast<size_t>(options.at("pool"))),
          refit_(options.at("refit")),
          doubt_(options.at("doubt")),
          margin_(options.at("margin")),
          forest_(static_cast<int>(options.at("trees"))) {}

    std::optional<uint32_t> propose(const SearchHistory& history, Random& random) override {
        const size_t proposed = history.space().size() - history.open().size();
        if (proposed < first_ || !history.best()) return spread_proposal(history, random);
        for (int attempt = 0; attempt < 2; ++attempt) {
            while (!queue_.empty()) {
                const uint32_t next = queue_.back();
                queue_.pop_back();
                if (!history.proposed(next)) return next;
            }
            refill(history, random);
        }
        return std::nullopt;
    }

private:
    // Fits the forest and queues the configurations of the largest expected improvement.
    void refill(const SearchHistory& history, Random& random) {
        const std::vector<Trial> trials = sorted_trials(history, 160);
        const double best = trials[0].cost;
        std::vector<Forest::Sample> samples;
        for (const Trial& trial : trials) samples.push_back({trial.index, static_cast<float>(-best / trial.cost)});
        forest_.fit(history.space(), samples, random);

        struct Scored {
            double score;
            uint32_t index;
        };
        // Every second fit looks for any improvement, so that the last per cents are found too.
        const double goal = -1 - (fits_++ % 2 == 0 ? margin_ : 0);
        std::vector<Scored> scored;
        for (const uint32_t index : candidate_pool(history, trials, elite_, pool_, random)) {
            const Forest::Prediction prediction = forest_.predict(history.space(), index);
            scored.push_back({expected_improvement(goal, prediction.mean, std::max(1e-6, doubt_ * prediction.deviation)), index});
        }
        const size_t wanted = std::min(scored.size(), std::max<size_t>(1, static_cast<size_t>(refit_ * static_cast<double>(trials.size()))));
        std::ranges::partial_sort(scored, scored.begin() + static_cast<ptrdiff_t>(wanted),
                                  [](const Scored& a, const Scored& b) { return a.score != b.score ? a.score > b.score : a.index < b.index; });
        for (size_t i = wanted; i > 0; --i) queue_.push_back(scored[i - 1].index);
    }

    size_t first_, elite_, pool_;
    double refit_, doubt_, margin_;
    size_t fits_ = 0;
    Forest forest_;
    std::vector<uint32_t> queue_;  // best last
};

const StrategyOption options[] = {
    {"first", 12, "configurations spread over the space (and the prior's best) before the first fit"},
    {"elite", 6, "best configurations whose neighbours are always considered"},
    {"pool", 300, "random configurations considered beside those"},
    {"refit", 0.03, "configurations taken from one fit, as a fraction of those measured"},
    {"margin", 0.1, "improvement that is looked for: with 0 a search stays long on a plateau"},
    {"doubt", 1.5, "factor on the forest's uncertainty: larger explores more"},
    {"trees", 12, "size of the forest"},
};

}  // namespace

const StrategyRow forest_strategy = {"forest", "expected improvement by a regression forest", options,
                                     [](const OptionValues& values) -> std::unique_ptr<Strategy> { return std::make_unique<ForestSearch>(values); }};

}  // namespace tilewright
