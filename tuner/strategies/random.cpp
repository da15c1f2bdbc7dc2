// Random: uniform without replacement, what every other strategy must beat.
#include "tuner/strategies/strategies.h"

namespace tilewright {
namespace {

class RandomSearch : public Strategy {
public:
    std::optional<uint32_t> propose(const SearchHistory& history, Random& random) override { return history.random_open(random); }
};

}  // namespace

const StrategyRow random_strategy = {
    "random", "uniform without replacement", {}, [](const OptionValues&) -> std::unique_ptr<Strategy> { return std::make_unique<RandomSearch>(); }};

}  // namespace tilewright
