// Gaussian process regression with an incrementally grown Cholesky factor.
#include "tuner/gaussian_process.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace tilewright {
namespace {

constexpr double least_noise = 1e-4;  // of the targets' variance
constexpr float table_reach = 16;     // squared distance from which the covariance is taken as that of the table's end
constexpr int table_steps = 2048;

// (1 + sqrt(3 s)) exp(-sqrt(3 s)) of a squared distance s, interpolated: no transcendental function in the inner loops.
std::array<float, table_steps + 2> make_matern_table() {
    std::array<float, table_steps + 2> values{};
    for (size_t i = 0; i < values.size(); ++i) {
        const double r = std::sqrt(3 * table_reach * static_cast<double>(i) / table_steps);
        values[i] = static_cast<float>((1 + r) * std::exp(-r));
    }
    return values;
}

const std::array<float, table_steps + 2> matern_table = make_matern_table();

float matern(float squared) {
    const float place = std::min(squared, table_reach) * (table_steps / table_reach);
    const int low = static_cast<int>(place);
    const float* step = matern_table.data() + low;
    return step[0] + (place - static_cast<float>(low)) * (step[1] - step[0]);
}

double twos(double value) {
    const double size = std::fabs(value);
    return size >= 1 && size < 0x1p52 && size == std::floor(size) ? std::countr_zero(static_cast<uint64_t>(size)) : 0;
}

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

GaussianProcess::GaussianProcess(const SearchSpace& space) : space_(&space), log_noise_(std::log(1e-2)) {
    for (size_t i = 0; i < space.parameters().size(); ++i) {
        const SearchParameter& parameter = space.parameters()[i];
        const size_t count = parameter.labels.size();
        table_offset_.push_back(table_size_);
        table_size_ += count * count;
        if (count < 2) continue;
        Dimension rank{i, {}}, even{i, {}};
        double most = 0;
        for (const double position : parameter.positions) most = std::max(most, twos(position));
        for (size_t value = 0; value < parameter.positions.size(); ++value) {
            rank.position.push_back(static_cast<float>(value) / static_cast<float>(count - 1));
            if (most > 0 && count > 2) even.position.push_back(static_cast<float>(twos(parameter.positions[value]) / most));
        }
        dimensions_.push_back(rank);
        if (!even.position.empty()) dimensions_.push_back(even);
    }
    log_weights_.assign(dimensions_.size(), 0);
    build_tables(log_weights_, tables_);
}

void GaussianProcess::build_tables(std::span<const double> log_weights, std::vector<float>& tables) const {
    tables.assign(table_size_, 0);
    for (size_t d = 0; d < dimensions_.size(); ++d) {
        const Dimension& dimension = dimensions_[d];
        const size_t count = space_->parameters()[dimension.parameter].labels.size();
        const auto weight = static_cast<float>(std::exp(2 * log_weights[d]));
        float* table = tables.data() + table_offset_[dimension.parameter];
        for (size_t a = 0; a < count; ++a)
            for (size_t b = 0; b < count; ++b) {
                const float gap = dimension.position.empty() ? (a == b ? 0.0f : 1.0f) : dimension.position[a] - dimension.position[b];
                table[a * count + b] += weight * gap * gap;
            }
    }
}

float GaussianProcess::covariance(const std::vector<float>& tables, uint32_t a, uint32_t b) const {
    const auto first = space_->row(a), second = space_->row(b);
    float squared = 0;
    for (size_t i = 0; i < first.size(); ++i) squared += tables[table_offset_[i] + first[i] * space_->parameters()[i].labels.size() + second[i]];
    return matern(squared);
}

double GaussianProcess::log_likelihood(std::span<const Sample> samples, std::span<const double> log_weights, double log_noise) const {
    std::vector<float> tables;
    build_tables(log_weights, tables);
    const size_t n = samples.size();
    std::vector<float> factor(n * n), z(n);
    double mean = 0, squares = 0;
    for (const Sample& sample : samples) mean += sample.target / static_cast<double>(n);
    for (const Sample& sample : samples) squares += (sample.target - mean) * (sample.target - mean) / static_cast<double>(n);
    const double deviation = std::sqrt(std::max(squares, 1e-12));
    double determinant = 0, fit = 0;
    for (size_t i = 0; i < n; ++i) {
        float* row = &factor[i * n];
        for (size_t j = 0; j <= i; ++j) row[j] = covariance(tables, samples[i].index, samples[j].index);
        row[i] += static_cast<float>(std::exp(log_noise));
        for (size_t j = 0; j <= i; ++j) {
            const float* other = &factor[j * n];
            float lanes[4] = {0, 0, 0, 0};
            size_t k = 0;
            for (; k + 4 <= j; k += 4)
                for (size_t l = 0; l < 4; ++l) lanes[l] += row[k + l] * other[k + l];
            float sum = row[j] - (lanes[0] + lanes[1]) - (lanes[2] + lanes[3]);
            for (; k < j; ++k) sum -= row[k] * other[k];
            row[j] = j < i ? sum / other[j] : std::sqrt(std::max(sum, 1e-6f));
        }
        float sum = static_cast<float>((samples[i].target - mean) / deviation);
        for (size_t k = 0; k < i; ++k) sum -= row[k] * z[k];
        z[i] = sum / row[i];
        determinant += std::log(row[i]);
        fit += static_cast<double>(z[i]) * z[i];
    }
    // The scale is integrated out at its best value; a weak prior keeps weights that the samples say nothing about near one.
    double likelihood = -determinant - 0.5 * static_cast<double>(n) * std::log(std::max(fit, 1e-9) / static_cast<double>(n));
    for (const double weight : log_weights) likelihood -= 0.5 * (weight / 1.5) * (weight / 1.5);
    return likelihood - 0.5 * std::pow((log_noise - std::log(1e-2)) / 2, 2);
}

void GaussianProcess::fit_weights(std::span<const Sample> samples, Random& random) {
    double best = log_likelihood(samples, log_weights_, log_noise_);
    std::vector<size_t> order(dimensions_.size() + 1);
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
    for (const size_t d : order) {
        for (const double step : {0.9, -0.9}) {
            bool improved = false;
            for (int repeat = 0; repeat < 3; ++repeat) {
                std::vector<double> weights = log_weights_;
                double noise = log_noise_;
                if (d < weights.size())
                    weights[d] = std::clamp(weights[d] + step, -4.0, 3.0);
                else
                    noise = std::clamp(noise + 1.5 * step, std::log(least_noise), 0.0);
                const double likelihood = log_likelihood(samples, weights, noise);
                if (likelihood <= best) break;
                best = likelihood;
                log_weights_ = weights;
                log_noise_ = noise;
                improved = true;
            }
            if (improved) break;
        }
    }
    build_tables(log_weights_, tables_);
}

void GaussianProcess::observe(std::span<const Sample> samples, std::vector<uint32_t> pool) {
    observed_.clear();
    factor_.clear();
    whitened_.clear();
    rows_.clear();
    pool_ = std::move(pool);
    pool_values_.assign(space_->parameters().size(), std::vector<uint16_t>(pool_.size()));
    for (size_t i = 0; i < pool_.size(); ++i)
        for (size_t p = 0; p < pool_values_.size(); ++p) pool_values_[p][i] = space_->row(pool_[i])[p];
    mean_.assign(pool_.size(), 0);
    variance_.assign(pool_.size(), 1);
    center_ = 0;
    double squares = 0;
    for (const Sample& sample : samples) center_ += sample.target / static_cast<double>(samples.size());
    for (const Sample& sample : samples) squares += (sample.target - center_) * (sample.target - center_) / static_cast<double>(samples.size());
    scale_ = std::sqrt(std::max(squares, 1e-12));
    for (const Sample& sample : samples) observe(sample);
    // The targets' scale that fits best, given the covariance.
    double fit = 0;
    for (const float z : whitened_) fit += static_cast<double>(z) * z;
    spread_ = std::sqrt(std::max(fit / static_cast<double>(samples.size()), 1e-6));
}

void GaussianProcess::observe(const Sample& sample) {
    std::vector<float> row;
    for (size_t j = 0; j < observed_.size(); ++j) {
        float sum = covariance(tables_, sample.index, observed_[j]);
        for (size_t k = 0; k < j; ++k) sum -= row[k] * factor_[j][k];
        row.push_back(sum / factor_[j][j]);
    }
    float square = static_cast<float>(1 + std::exp(log_noise_)), target = static_cast<float>((sample.target - center_) / scale_);
    for (size_t k = 0; k < row.size(); ++k) {
        square -= row[k] * row[k];
        target -= row[k] * whitened_[k];
    }
    const float diagonal = std::sqrt(std::max(square, 1e-6f));
    target /= diagonal;

    std::vector<float> across(pool_.size());
    for (size_t p = 0; p < pool_values_.size(); ++p) {
        const size_t count = space_->parameters()[p].labels.size();
        if (count < 2) continue;
        const float* distances = tables_.data() + table_offset_[p] + space_->row(sample.index)[p] * count;
        const uint16_t* values = pool_values_[p].data();
        for (size_t i = 0; i < pool_.size(); ++i) across[i] += distances[values[i]];
    }
    for (float& value : across) value = matern(value);
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

double GaussianProcess::deviation(size_t place) const { return scale_ * spread_ * std::sqrt(std::max(static_cast<double>(variance_[place]), 1e-8)); }

}  // namespace tilewright
