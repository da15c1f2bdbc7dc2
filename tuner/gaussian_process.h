// A Gaussian process over a search space: what unmeasured configurations may cost, and how sure that is.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/random.h"
#include "tuner/search_space.h"

namespace tilewright {

// Matern 3/2 covariance of a weighted distance: one weight per feature (rank of each parameter, power of two in it), found by likelihood.
// Predictions are kept for a pool of configurations and updated with every observation. Not thread-safe; the space must outlive it.
class GaussianProcess {
public:
    explicit GaussianProcess(const SearchSpace& space);

    struct Sample {
        uint32_t index;
        double target;
    };
    // Improves the weights for these samples: each in turn is made larger or smaller where that makes the samples likelier.
    void fit_weights(std::span<const Sample> samples, Random& random);
    // Forgets all observations, takes these, and predicts the pool.
    void observe(std::span<const Sample> samples, std::vector<uint32_t> pool);
    // One more observation.
    void observe(const Sample& sample);

    std::span<const uint32_t> pool() const { return pool_; }
    double mean(size_t place) const { return center_ + scale_ * mean_[place]; }  // of pool()[place]
    double deviation(size_t place) const;

private:
    struct Dimension {  // one feature of one parameter
        size_t parameter;
        std::vector<float> position;  // per value, spread over [0, 1]; empty: values are equal or different
    };
    void build_tables(std::span<const double> log_weights, std::vector<float>& tables) const;
    float covariance(const std::vector<float>& tables, uint32_t a, uint32_t b) const;
    double log_likelihood(std::span<const Sample> samples, std::span<const double> log_weights, double log_noise) const;

    const SearchSpace* space_;
    std::vector<Dimension> dimensions_;
    std::vector<size_t> table_offset_;  // per parameter: its matrix of squared distances between values
    size_t table_size_ = 0;
    std::vector<double> log_weights_;
    double log_noise_;
    std::vector<float> tables_;

    double center_ = 0, scale_ = 1;  // of the targets
    double spread_ = 1;              // standard deviation of the process, in scales
    std::vector<uint32_t> observed_;
    std::vector<std::vector<float>> factor_;  // rows of the Cholesky factor
    std::vector<float> whitened_;             // factor^-1 targets
    std::vector<uint32_t> pool_;
    std::vector<std::vector<uint16_t>> pool_values_;  // per parameter, of the pool
    std::vector<std::vector<float>> rows_;            // factor^-1 covariance(observed, pool)
    std::vector<float> mean_, variance_;              // of the pool, standardised
};

}  // namespace tilewright
