// Portfolio: the model most of the time, in turns with strategies that do not depend on the model being right.
#include "tuner/strategies/strategies.h"

namespace tilewright {
namespace {

class Portfolio : public Strategy {
public:
    explicit Portfolio(const OptionValues& options) : model_turns_(static_cast<size_t>(options.at("model_turns"))) {
        for (const StrategyRow* row : {&model_strategy, &greedy_strategy, &genetic_strategy}) {
            OptionValues values;
            for (const StrategyOption& option : row->options) values[option.name] = option.value;
            members_.push_back(row->make(values));
        }
    }

    std::optional<uint32_t> propose(const SearchHistory& history, Random& random) override {
        const size_t turn = turn_++ % (model_turns_ + 1);
        const size_t member = turn < model_turns_ ? 0 : 1 + others_++ % (members_.size() - 1);
        return members_[member]->propose(history, random);
    }

    void learn(const SearchHistory& history, const SearchHistory::Trial& trial, Random& random) override {
        for (const auto& member : members_) member->learn(history, trial, random);
    }

private:
    size_t model_turns_, turn_ = 0, others_ = 0;
    std::vector<std::unique_ptr<Strategy>> members_;
};

const StrategyOption options[] = {
    {"model_turns", 20, "proposals of the model for each one of greedy or genetic"},
};

}  // namespace

const StrategyRow portfolio_strategy = {"portfolio", "the model, in turns with greedy and genetic", options,
                                        [](const OptionValues& values) -> std::unique_ptr<Strategy> { return std::make_unique<Portfolio>(values); }};

}  // namespace tilewright
