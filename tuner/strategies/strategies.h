// The rows of the table of strategies, each defined in the file of its name.
#pragma once
#include "tuner/strategy.h"

namespace tilewright {

extern const StrategyRow exhaustive_strategy;
extern const StrategyRow random_strategy;
extern const StrategyRow greedy_strategy;
extern const StrategyRow genetic_strategy;
extern const StrategyRow annealing_strategy;
extern const StrategyRow model_strategy;
extern const StrategyRow forest_strategy;
extern const StrategyRow portfolio_strategy;

}  // namespace tilewright
