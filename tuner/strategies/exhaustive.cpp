// Exhaustive: every configuration in the order of the space, for the truth about small spaces.
#include "tuner/strategies/strategies.h"

namespace tilewright {
namespace {

class Exhaustive : public Strategy {
public:
    std::optional<uint32_t> propose(const SearchHistory& history, Random&) override {
        while (history.proposed(next_)) ++next_;  // ends: there is an open one, and proposed ones stay proposed
        return next_;
    }

private:
    uint32_t next_ = 0;
};

}  // namespace

const StrategyRow exhaustive_strategy = {
    "exhaustive", "every configuration, in order", {}, [](const OptionValues&) -> std::unique_ptr<Strategy> { return std::make_unique<Exhaustive>(); }};

}  // namespace tilewright
