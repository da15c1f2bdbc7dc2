// A search space from value lists and conditions, and conditions from a list of legal configurations.
#pragma once
#include <string>
#include <vector>

#include "tilewright/status.h"
#include "tuner/search_space.h"

namespace tilewright {

// What the legal configurations of a space have in common: an expression (tuner/expression.h) over the parameters' names.
struct SpaceCondition {
    std::string expression;
    std::vector<std::string> parameters;  // those that it speaks of
};

// The rows of value indices, the first parameter varying slowest, for which every condition is true. A value is what its position says, where the
// parameter has positions, else its label as text. Conditions are looked at as soon as the parameters that they speak of have values, each distinct
// combination of those once, where they are not too many. invalid_argument: a condition that cannot be read or evaluated, with the values; more than
// 2^27 rows' values.
Result<std::vector<uint16_t>> legal_rows(const std::vector<SearchParameter>& parameters, const std::vector<SpaceCondition>& conditions);

// Conditions that exactly the rows of `space` fulfil, of few parameters each as far as that goes: combinations of two, then three parameters' values that
// never occur; what then is left over is told one by one. Parameters without positions are not supported.
std::vector<SpaceCondition> conditions_of(const SearchSpace& space);

}  // namespace tilewright
