// How alike the costs of two configurations are expected to be: a covariance over a search space, learnt from measurements.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/search_space.h"

namespace tilewright {

struct CostSample {
    uint32_t index;  // of the configuration
    double target;   // its cost or a monotone function of it
};

// A product of one factor per parameter, (1 + weighted likenesses of the two values) / (1 + weights): main effects, interactions of two parameters, of
// three, ..., the higher the weaker. Likenesses are nearness in rank, nearness in powers of two, and equality, which lets erratic
// parameters be erratic. If the space has a prior, nearness in its ranking is one factor more. Weights, lengths and noise are where
// the samples are most likely, given that a parameter is taken for unimportant until they say otherwise. Not thread-safe; the space must outlive it.
class ProductCovariance {
public:
    explicit ProductCovariance(const SearchSpace& space);

    // Improves the weights for these samples by so many gradient steps from where they are. Costs about samples^3 operations a step.
    void fit(std::span<const CostSample> samples, int steps);

    float operator()(uint32_t a, uint32_t b) const;  // 1 for a == b
    double noise() const;                            // the part of a cost that nothing else tells, as a fraction of the variance

    // The covariance of `index` with many: the product over the dimensions of row(dimension, index)[value(dimension, other)].
    size_t dimensions() const { return dimensions_.size(); }
    uint8_t value(size_t dimension, uint32_t index) const { return dimensions_[dimension].values[index]; }
    const float* row(size_t dimension, uint32_t index) const {
        return tables_.data() + dimensions_[dimension].table + value(dimension, index) * dimensions_[dimension].count;
    }

private:
    enum Likeness { near, even, equal, likenesses };
    struct Dimension {                   // one parameter, or the prior
        size_t count = 0;                // different values, 256 at most: neighbours share one where there are more
        size_t table = 0;                // where its count x count factors begin
        std::vector<uint8_t> values;     // of each configuration
        std::vector<float> distance[2];  // near and even, count x count; empty: that likeness does not apply
    };
    struct Mix {  // a dimension's weights, computed from its settings
        std::array<double, likenesses> weight;
        double length, total;
    };
    void add(size_t count, std::vector<uint8_t> values, bool ordered, bool alike_if_equal, std::span<const double> twos);
    Mix mix(size_t dimension) const;
    double likeness(const Dimension& dimension, Likeness kind, size_t pair, double length) const;
    void build_tables();
    double likelihood(std::span<const CostSample> samples, std::vector<double>& slope) const;

    std::vector<Dimension> dimensions_;
    std::vector<double> settings_;  // per dimension: log weight of each likeness, log length of `near`; last: log noise
    std::vector<bool> fixed_;       // settings that mean nothing
    std::vector<float> tables_;
};

}  // namespace tilewright
