// A Gaussian process over a search space: what unmeasured configurations may cost, and how sure that is.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/product_covariance.h"

namespace tilewright {

// Predictions are kept for a pool of configurations and updated with every observation. Not thread-safe; the space must outlive it.
class GaussianProcess {
public:
    explicit GaussianProcess(const SearchSpace& space) : covariance_(space) {}

    // Improves the covariance; predictions follow with the next observe() of all samples.
    void fit(std::span<const CostSample> samples, int steps) { covariance_.fit(samples, steps); }
    // Forgets all observations, takes these, and predicts the pool.
    void observe(std::span<const CostSample> samples, std::vector<uint32_t> pool);
    // One more observation.
    void observe(const CostSample& sample);

    std::span<const uint32_t> pool() const { return pool_; }
    double mean(size_t place) const { return center_ + scale_ * mean_[place]; }  // of pool()[place]
    // Of the cost that a measurement would give, so with the noise: that is mostly what no parameter explains, and some of it is luck to be had.
    double deviation(size_t place) const;

private:
    ProductCovariance covariance_;
    double center_ = 0, scale_ = 1;  // of the targets
    double spread_ = 1;              // standard deviation of the process, in scales
    std::vector<uint32_t> observed_;
    std::vector<std::vector<float>> factor_;  // rows of the Cholesky factor
    std::vector<float> whitened_;             // factor^-1 targets
    std::vector<uint32_t> pool_;
    std::vector<std::vector<uint8_t>> pool_values_;  // per dimension of the covariance, of the pool
    std::vector<std::vector<float>> rows_;           // factor^-1 covariance(observed, pool)
    std::vector<float> mean_, variance_;             // of the pool, standardised
};

}  // namespace tilewright
