// Gaussian process regression with an incrementally grown Cholesky factor.
#include "tuner/gaussian_process.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

// across -= sum over k of factors[k] * rows[k], elementwise over the pool; four rows at a time to spare the memory.
void subtract_scaled(float* __restrict across, const std::vector<std::vector<float>>& rows, const std::vector<float>& factors, size_t count) {
    size_t k = 0;
    for (; k + 4 <= factors.size(); k += 4) {
        const float a = factors[k], b = factors[k + 1], c = factors[k + 2], d = factors[k + 3];
        const float* __restrict first = rows[k].data();
        const float* __restrict second = rows[k + 1].data();
        const float* __restrict third = rows[k + 2].data();
        const float* __restrict fourth = rows[k + 3].data();
        for (size_t i = 0; i < count; ++i) across[i] -= (a * first[i] + b * second[i]) + (c * third[i] + d * fourth[i]);
    }
    for (; k < factors.size(); ++k)
        for (size_t i = 0; i < count; ++i) across[i] -= factors[k] * rows[k][i];
}

}  // namespace

void GaussianProcess::observe(std::span<const CostSample> samples, std::vector<uint32_t> pool) {
    observed_.clear();
    factor_.clear();
    whitened_.clear();
    rows_.clear();
    pool_ = std::move(pool);
    pool_values_.assign(covariance_.dimensions(), std::vector<uint8_t>(pool_.size()));
    for (size_t d = 0; d < pool_values_.size(); ++d)
        for (size_t i = 0; i < pool_.size(); ++i) pool_values_[d][i] = covariance_.value(d, pool_[i]);
    mean_.assign(pool_.size(), 0);
    variance_.assign(pool_.size(), 1);
    center_ = 0;
    double squares = 0;
    for (const CostSample& sample : samples) center_ += sample.target / static_cast<double>(samples.size());
    for (const CostSample& sample : samples) squares += (sample.target - center_) * (sample.target - center_) / static_cast<double>(samples.size());
    scale_ = std::sqrt(std::max(squares, 1e-12));
    for (const CostSample& sample : samples) observe(sample);
    // The targets' scale that fits best, given the covariance.
    double fit = 0;
    for (const float z : whitened_) fit += static_cast<double>(z) * z;
    spread_ = std::sqrt(std::max(fit / static_cast<double>(samples.size()), 1e-6));
}

void GaussianProcess::observe(const CostSample& sample) {
    std::vector<float> row;
    for (size_t j = 0; j < observed_.size(); ++j) {
        float sum = covariance_(sample.index, observed_[j]);
        for (size_t k = 0; k < j; ++k) sum -= row[k] * factor_[j][k];
        row.push_back(sum / factor_[j][j]);
    }
    float square = static_cast<float>(1 + covariance_.noise()), target = static_cast<float>((sample.target - center_) / scale_);
    for (size_t k = 0; k < row.size(); ++k) {
        square -= row[k] * row[k];
        target -= row[k] * whitened_[k];
    }
    const float diagonal = std::sqrt(std::max(square, 1e-6f));
    target /= diagonal;

    std::vector<float> across(pool_.size(), 1);
    for (size_t d = 0; d < pool_values_.size(); ++d) {
        const float* factors = covariance_.row(d, sample.index);
        const uint8_t* values = pool_values_[d].data();
        for (size_t i = 0; i < pool_.size(); ++i) across[i] *= factors[values[i]];
    }
    subtract_scaled(across.data(), rows_, row, pool_.size());
    for (size_t i = 0; i < pool_.size(); ++i) {
        across[i] /= diagonal;
        mean_[i] += across[i] * target;
        variance_[i] -= across[i] * across[i];
    }
    row.push_back(diagonal);
    observed_.push_back(sample.index);
    factor_.push_back(std::move(row));
    whitened_.push_back(target);
    rows_.push_back(std::move(across));
}

double GaussianProcess::deviation(size_t place) const {
    return scale_ * spread_ * std::sqrt(std::max(static_cast<double>(variance_[place]), 0.0) + covariance_.noise());
}

}  // namespace tilewright
