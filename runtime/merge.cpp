// Merges attention states row by row.
#include "tilewright/merge.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace tilewright {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Status check(std::span<const AttentionState> states, int64_t rows, int64_t columns, const float* out) {
    if (rows < 0 || columns < 0)
        return invalid_argument("rows is " + std::to_string(rows) + " and columns is " + std::to_string(columns) + "; neither may be negative");
    if (rows == 0) return {};
    if (columns > 0 && !out) return invalid_argument("out is null, but there are " + std::to_string(rows) + " rows");
    for (size_t i = 0; i < states.size(); ++i)
        if (!states[i].lse || (columns > 0 && !states[i].out))
            return invalid_argument("state " + std::to_string(i) + " of " + std::to_string(states.size()) + " has a null " + (states[i].lse ? "out" : "lse"));
    return {};
}

}  // namespace

Status attention_merge(std::span<const AttentionState> states, int64_t rows, int64_t columns, float* out, float* lse) {
    TILEWRIGHT_RETURN_IF_ERROR(check(states, rows, columns, out));
    std::vector<double> weights(states.size());
    for (int64_t row = 0; row < rows; ++row) {
        double maximum = -infinity, sum = 0;
        for (const AttentionState& state : states)
            if (state.lse[row] > maximum) maximum = state.lse[row];
        double reference = maximum == -infinity ? 0 : maximum;
        for (size_t i = 0; i < states.size(); ++i) sum += weights[i] = std::exp(double{states[i].lse[row]} - reference);
        for (int64_t column = 0; column < columns; ++column) {
            double mean = 0;
            for (size_t i = 0; i < states.size(); ++i)
                if (weights[i] != 0) mean += weights[i] * double{states[i].out[row * columns + column]};
            out[row * columns + column] = static_cast<float>(sum == 0 ? 0 : mean / sum);
        }
        if (lse) lse[row] = static_cast<float>(reference + std::log(sum));
    }
    return {};
}

}  // namespace tilewright
