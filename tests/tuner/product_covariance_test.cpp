// What the covariance learns: which parameters matter, and that a predicted cost is near the real one.
#include "tuner/product_covariance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tuner/gaussian_process.h"
#include "tuner/random.h"

namespace tilewright {
namespace {

SearchSpace grid(const std::vector<size_t>& counts, std::vector<double> prior = {}) {
    std::vector<SearchParameter> parameters;
    size_t size = 1;
    for (const size_t count : counts) {
        SearchParameter parameter{"p" + std::to_string(parameters.size()), {}, {}};
        for (size_t value = 0; value < count; ++value) {
            parameter.labels.push_back(std::to_string(value));
            parameter.positions.push_back(static_cast<double>(value));
        }
        parameters.push_back(std::move(parameter));
        size *= count;
    }
    std::vector<uint16_t> rows;
    for (size_t index = 0; index < size; ++index)
        for (size_t rest = index, p = 0; p < counts.size(); rest /= counts[p++]) rows.push_back(static_cast<uint16_t>(rest % counts[p]));
    return *SearchSpace::create(std::move(parameters), std::move(rows), std::move(prior));
}

// Depends on the first two parameters, and on them together; not on the third.
double cost(const SearchSpace& space, uint32_t index) {
    const auto row = space.row(index);
    return 0.3 * row[0] + (row[0] % 2 == 0 ? 1.0 : -0.5) * row[1];
}

std::vector<CostSample> samples_of(const SearchSpace& space, size_t count) {
    Random random(3);
    std::vector<CostSample> samples;
    for (size_t i = 0; i < count; ++i) {
        const uint32_t index = random.below(space.size());
        samples.push_back({index, cost(space, index)});
    }
    return samples;
}

TEST(ProductCovariance, FindsTheParameterThatDoesNotMatter) {
    const SearchSpace space = grid({8, 4, 6});
    ProductCovariance covariance(space);
    covariance.fit(samples_of(space, 60), 30);
    const uint32_t origin = 0, first = 1, second = 8, third = 32;  // one step of each parameter
    EXPECT_FLOAT_EQ(covariance(origin, origin), 1);
    EXPECT_GT(covariance(origin, third), 0.95);
    EXPECT_GT(covariance(origin, third), covariance(origin, first));
    EXPECT_GT(covariance(origin, third), covariance(origin, second));
}

TEST(ProductCovariance, LetsAGaussianProcessPredictWhatWasNotMeasured) {
    const SearchSpace space = grid({8, 4, 6});
    const std::vector<CostSample> samples = samples_of(space, 60);
    GaussianProcess process(space);
    process.fit(samples, 30);
    std::vector<uint32_t> all;
    for (uint32_t index = 0; index < space.size(); ++index) all.push_back(index);
    process.observe(samples, all);
    double squares = 0, mean = 0, error = 0;
    for (const uint32_t index : all) mean += cost(space, index) / space.size();
    for (const uint32_t index : all) {
        squares += std::pow(cost(space, index) - mean, 2);
        error += std::pow(cost(space, index) - process.mean(index), 2);
        EXPECT_GT(process.deviation(index), 0);
    }
    EXPECT_LT(error, 0.15 * squares);  // 192 configurations from 60 samples
}

TEST(ProductCovariance, TakesTheRankingOfAPriorForAParameter) {
    std::vector<double> prior;
    for (int index = 0; index < 1000; ++index) prior.push_back((index * 37) % 1000 + 1);
    const SearchSpace space = grid({1000}, prior);
    ProductCovariance covariance(space);
    ASSERT_EQ(covariance.dimensions(), 2u);
    std::vector<CostSample> samples;
    for (uint32_t index = 0; index < 80; ++index) samples.push_back({index * 12, prior[index * 12]});
    covariance.fit(samples, 30);
    // 0 and 27 (37 * 27 = 999): far apart by the prior, neighbours by the parameter; 0 and 973 (37 * 973 mod 1000 = 1) the other way round.
    EXPECT_GT(covariance(0, 973), covariance(0, 27) + 0.1);
}

TEST(ProductCovariance, PutsTheManyValuesOfAParameterIntoGroups) {
    const SearchSpace space = grid({3000});
    ProductCovariance covariance(space);
    EXPECT_EQ(covariance.value(0, 0), 0);
    EXPECT_EQ(covariance.value(0, 2999), 255);
    EXPECT_GT(covariance(0, 100), covariance(0, 2900));
}

}  // namespace
}  // namespace tilewright
