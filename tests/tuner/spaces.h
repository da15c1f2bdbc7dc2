// Small spaces with known answers, for the tests of strategies and simulation.
#pragma once
#include <cmath>

#include "tuner/replay.h"

namespace tilewright::test {

// Two numbers of 12 powers of two each and a switch without order; the product of the numbers is limited. The best is (64, 256, "b"),
// with cost 1, and the slope towards it is even, except that rows with both numbers equal fail.
inline RecordedSpace bowl() {
    std::vector<SearchParameter> parameters = {{"x", {}, {}}, {"y", {}, {}}, {"mode", {"a", "b", "c"}, {}}};
    for (int i = 0; i < 12; ++i)
        for (size_t p = 0; p < 2; ++p) {
            parameters[p].labels.push_back(std::to_string(1 << i));
            parameters[p].positions.push_back(1 << i);
        }
    std::vector<uint16_t> rows;
    std::vector<double> costs;
    std::vector<std::string> outcomes;
    for (int x = 0; x < 12; ++x)
        for (int y = 0; y < 12; ++y)
            for (int mode = 0; mode < 3; ++mode) {
                if (x + y > 18) continue;
                for (const int value : {x, y, mode}) rows.push_back(static_cast<uint16_t>(value));
                costs.push_back(x == y ? INFINITY : 1 + 0.1 * std::abs(x - 6) + 0.15 * std::abs(y - 8) + 0.2 * std::abs(mode - 1));
                outcomes.push_back(x == y ? "runtime" : "correct");
            }
    return {"bowl", *SearchSpace::create(std::move(parameters), std::move(rows)), std::move(costs), std::move(outcomes)};
}

}  // namespace tilewright::test
