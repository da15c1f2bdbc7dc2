// The table of strategies, and the books of a search.
#include "tuner/strategy.h"

#include <cassert>
#include <charconv>
#include <cmath>

#include "tuner/strategies/strategies.h"

namespace tilewright {

SearchHistory::SearchHistory(const SearchSpace& space)
    : space_(&space), open_(space.size()), place_(space.size()), costs_(space.size(), std::numeric_limits<double>::quiet_NaN()) {
    for (uint32_t i = 0; i < space.size(); ++i) open_[i] = place_[i] = i;
}

std::optional<SearchHistory::Trial> SearchHistory::best() const {
    if (!best_) return std::nullopt;
    return trials_[*best_];
}

std::optional<double> SearchHistory::cost(uint32_t index) const {
    if (std::isnan(costs_[index])) return std::nullopt;
    return costs_[index];
}

void SearchHistory::mark_proposed(uint32_t index) {
    if (proposed(index)) return;
    const uint32_t last = open_.back(), place = place_[index];
    open_[place] = last;
    place_[last] = place;
    open_.pop_back();
    place_[index] = std::numeric_limits<uint32_t>::max();
}

void SearchHistory::record(uint32_t index, double cost) {
    mark_proposed(index);
    costs_[index] = cost;
    trials_.push_back({index, cost});
    if (cost < failed_cost && (!best_ || cost < trials_[*best_].cost)) best_ = trials_.size() - 1;
}

std::span<const StrategyRow> strategies() {
    static const StrategyRow rows[] = {portfolio_strategy, model_strategy,     forest_strategy, greedy_strategy,
                                       genetic_strategy,   annealing_strategy, random_strategy, exhaustive_strategy};
    return rows;
}

Result<std::unique_ptr<Strategy>> make_strategy(std::string_view text) {
    const size_t colon = text.find(':');
    const std::string_view wanted = text.substr(0, colon);
    const StrategyRow* row = nullptr;
    std::string known;
    for (const StrategyRow& candidate : strategies()) {
        if (candidate.name == wanted) row = &candidate;
        known += std::string(known.empty() ? "" : ", ") + candidate.name;
    }
    if (row == nullptr) return invalid_argument("unknown strategy '" + std::string(wanted) + "'; known are " + known);
    OptionValues values;
    for (const StrategyOption& option : row->options) values[option.name] = option.value;
    std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    while (!rest.empty()) {
        const std::string_view part = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(part.size() + 1, rest.size()));
        const size_t equals = part.find('=');
        const auto option = values.find(part.substr(0, equals));
        if (option == values.end()) {
            std::string names;
            for (const StrategyOption& each : row->options) names += std::string(names.empty() ? "" : ", ") + each.name;
            return invalid_argument("strategy '" + std::string(wanted) + "' has no option '" + std::string(part.substr(0, equals)) + "'; it has " +
                                    (names.empty() ? "none" : names));
        }
        const std::string_view number = equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
        const auto parsed = std::from_chars(number.data(), number.data() + number.size(), option->second);
        if (number.empty() || parsed.ec != std::errc() || parsed.ptr != number.data() + number.size() || !std::isfinite(option->second))
            return invalid_argument("option '" + std::string(part) + "' of strategy '" + std::string(wanted) + "' is not name=number");
    }
    return row->make(values);
}

Search::Search(const SearchSpace& space, std::unique_ptr<Strategy> strategy, uint64_t seed) : history_(space), strategy_(std::move(strategy)), random_(seed) {}

std::optional<uint32_t> Search::propose() {
    if (history_.open().empty()) return std::nullopt;
    for (const uint32_t seed : history_.space().seeds())
        if (!history_.proposed(seed)) {
            history_.mark_proposed(seed);
            return seed;
        }
    std::optional<uint32_t> index = strategy_->propose(history_, random_);
    assert(!index || !history_.proposed(*index));
    if (!index || history_.proposed(*index)) index = history_.random_open(random_);
    history_.mark_proposed(*index);
    return index;
}

void Search::tell(uint32_t index, double cost) {
    history_.record(index, cost);
    strategy_->learn(history_, history_.trials().back(), random_);
}

}  // namespace tilewright
