// Search strategies: they propose configurations of an abstract space and are told what those cost. They know no kernel.
#pragma once
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/random.h"
#include "tuner/search_space.h"

namespace tilewright {

inline constexpr double failed_cost = std::numeric_limits<double>::infinity();  // told for a configuration that gave no time

// What has been proposed and learnt so far, shared by all strategies of one search.
class SearchHistory {
public:
    struct Trial {
        uint32_t index;
        double cost;  // failed_cost if it failed
    };
    explicit SearchHistory(const SearchSpace& space);

    const SearchSpace& space() const { return *space_; }
    bool proposed(uint32_t index) const { return place_[index] >= open_.size(); }
    std::span<const uint32_t> open() const { return open_; }   // not yet proposed, in no order
    std::span<const Trial> trials() const { return trials_; }  // in the order in which they were told
    std::optional<Trial> best() const;                         // none before the first success
    std::optional<double> cost(uint32_t index) const;          // none before it was told
    uint32_t random_open(Random& random) const { return open_[random.below(static_cast<uint32_t>(open_.size()))]; }

    void mark_proposed(uint32_t index);
    void record(uint32_t index, double cost);

private:
    const SearchSpace* space_;
    std::vector<uint32_t> open_;   // [0, open): not proposed
    std::vector<uint32_t> place_;  // of each configuration in open_; open_.size() or more once proposed
    std::vector<double> costs_;    // NaN until told
    std::vector<Trial> trials_;
    std::optional<size_t> best_;
};

class Strategy {
public:
    virtual ~Strategy() = default;
    // A configuration that was not proposed yet, or none if this strategy has no more ideas. There is at least one open one. Several
    // may be asked for before the first is told.
    virtual std::optional<uint32_t> propose(const SearchHistory& history, Random& random) = 0;
    // After the history took the result. Called for every trial, also for those that another strategy proposed.
    virtual void learn(const SearchHistory&, const SearchHistory::Trial&, Random&) {}
};

struct StrategyOption {
    const char* name;
    double value;  // default
    const char* help;
};
using OptionValues = std::map<std::string, double, std::less<>>;  // complete: every option of the row

// One row per strategy; adding one is a file in tuner/strategies/ and a row in strategy.cpp.
struct StrategyRow {
    const char* name;
    const char* summary;
    std::span<const StrategyOption> options;
    std::unique_ptr<Strategy> (*make)(const OptionValues&);
};
std::span<const StrategyRow> strategies();
inline constexpr const char* default_strategy = "portfolio";

// "genetic" or "genetic:population=30,mutation=0.2". invalid_argument names an unknown strategy or option and lists the known ones.
Result<std::unique_ptr<Strategy>> make_strategy(std::string_view text);

// A strategy at work: keeps the books, so that nothing is proposed twice and every configuration is reached in the end. Equal space,
// strategy, seed and results give equal proposals. Not thread-safe; the space must outlive it.
class Search {
public:
    Search(const SearchSpace& space, std::unique_ptr<Strategy> strategy, uint64_t seed);
    // None once every configuration was proposed.
    std::optional<uint32_t> propose();
    // The cost (any unit, lower is better) of a configuration, proposed or known from an earlier run; failed_cost if it failed.
    void tell(uint32_t index, double cost);
    const SearchHistory& history() const { return history_; }

private:
    SearchHistory history_;
    std::unique_ptr<Strategy> strategy_;
    Random random_;
};

}  // namespace tilewright
