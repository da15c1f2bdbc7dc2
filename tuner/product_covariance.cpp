// The covariance's tables, its likelihood and the slope of that, and the ascent.
#include "tuner/product_covariance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace tilewright {
namespace {

constexpr size_t most_values = 256;
constexpr size_t prior_values = 32;
constexpr double least_log_weight = -8, most_log_weight = 4;

// Beliefs about the logarithms of the settings: normal, with these centres and deviations. Wide ones: they decide while there is little
// else, and make an interaction of unmeasured strength a weak one.
struct Belief {
    double center, deviation;
};
const Belief weight_belief{std::log(0.3), 1.5}, length_belief{std::log(0.5), 1.0}, noise_belief{std::log(1e-2), 2.0};

double twos(double value) {
    const double size = std::fabs(value);
    return size >= 1 && size < 0x1p52 && size == std::floor(size) ? std::countr_zero(static_cast<uint64_t>(size)) : 0;
}

// The lower triangular square root of `matrix` (n x n, lower half given), in place.
void factorise(std::vector<float>& matrix, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        float* row = &matrix[i * n];
        for (size_t j = 0; j <= i; ++j) {
            const float* other = &matrix[j * n];
            float lanes[8] = {};
            size_t k = 0;
            for (; k + 8 <= j; k += 8)
                for (size_t lane = 0; lane < 8; ++lane) lanes[lane] += row[k + lane] * other[k + lane];
            float sum = row[j];
            for (const float lane : lanes) sum -= lane;
            for (; k < j; ++k) sum -= row[k] * other[k];
            row[j] = j < i ? sum / other[j] : std::sqrt(std::max(sum, 1e-6f));
        }
    }
}

std::vector<float> inverse_of_lower(const std::vector<float>& lower, size_t n) {
    std::vector<float> inverse(n * n, 0);
    for (size_t i = 0; i < n; ++i) {
        float* __restrict out = &inverse[i * n];
        for (size_t k = 0; k < i; ++k) {
            const float factor = lower[i * n + k];
            const float* __restrict row = &inverse[k * n];
            for (size_t j = 0; j <= k; ++j) out[j] -= factor * row[j];
        }
        const float diagonal = 1 / lower[i * n + i];
        for (size_t j = 0; j < i; ++j) out[j] *= diagonal;
        out[i] = diagonal;
    }
    return inverse;
}

}  // namespace

ProductCovariance::ProductCovariance(const SearchSpace& space) {
    for (size_t i = 0; i < space.parameters().size(); ++i) {
        const SearchParameter& parameter = space.parameters()[i];
        const size_t labels = parameter.labels.size(), count = std::min(labels, most_values);
        if (count < 2) continue;
        std::vector<uint8_t> values;
        for (uint32_t index = 0; index < space.size(); ++index) values.push_back(static_cast<uint8_t>(space.row(index)[i] * count / labels));
        std::vector<double> evenness;
        if (labels == count)
            for (const double position : parameter.positions) evenness.push_back(twos(position));
        if (std::ranges::all_of(evenness, [](double each) { return each == 0; })) evenness.clear();
        add(count, std::move(values), !parameter.positions.empty() && count > 2, true, evenness);
    }
    if (!space.prior().empty() && space.size() > prior_values) {
        std::vector<uint32_t> order(space.size());
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, {}, [&](uint32_t index) { return space.prior()[index]; });
        std::vector<uint8_t> values(space.size());
        for (size_t place = 0; place < order.size(); ++place) values[order[place]] = static_cast<uint8_t>(place * prior_values / order.size());
        add(prior_values, std::move(values), true, false, {});
    }
    settings_.push_back(noise_belief.center);
    fixed_.push_back(false);
    build_tables();
}

void ProductCovariance::add(size_t count, std::vector<uint8_t> values, bool ordered, bool alike_if_equal, std::span<const double> evenness) {
    Dimension dimension{count, tables_.size(), std::move(values), {}};
    tables_.resize(tables_.size() + count * count);
    for (size_t a = 0; a < count && ordered; ++a)
        for (size_t b = 0; b < count; ++b) {
            dimension.distance[near].push_back(std::fabs(static_cast<float>(a) - static_cast<float>(b)) / static_cast<float>(count - 1));
            if (!evenness.empty()) dimension.distance[even].push_back(static_cast<float>(std::fabs(evenness[a] - evenness[b])));
        }
    for (const bool used : {ordered, ordered && !evenness.empty(), alike_if_equal}) {
        settings_.push_back(weight_belief.center);
        fixed_.push_back(!used);
    }
    settings_.push_back(length_belief.center);
    fixed_.push_back(!ordered);
    dimensions_.push_back(std::move(dimension));
}

ProductCovariance::Mix ProductCovariance::mix(size_t dimension) const {
    const size_t first = dimension * (likenesses + 1);
    Mix result{{}, std::exp(settings_[first + likenesses]), 1};
    for (size_t kind = 0; kind < likenesses; ++kind) {
        result.weight[kind] = fixed_[first + kind] ? 0 : std::exp(settings_[first + kind]);
        result.total += result.weight[kind];
    }
    return result;
}

double ProductCovariance::likeness(const Dimension& dimension, Likeness kind, size_t pair, double length) const {
    if (kind == equal) return pair % (dimension.count + 1) == 0 ? 1 : 0;  // the diagonal
    if (dimension.distance[kind].empty()) return 0;
    return std::exp(-static_cast<double>(dimension.distance[kind][pair]) / (kind == near ? length : 1));
}

void ProductCovariance::build_tables() {
    for (size_t d = 0; d < dimensions_.size(); ++d) {
        const Mix settings = mix(d);
        for (size_t pair = 0; pair < dimensions_[d].count * dimensions_[d].count; ++pair) {
            double sum = 1;
            for (const Likeness kind : {near, even, equal})
                if (settings.weight[kind] > 0) sum += settings.weight[kind] * likeness(dimensions_[d], kind, pair, settings.length);
            tables_[dimensions_[d].table + pair] = static_cast<float>(sum / settings.total);
        }
    }
}

float ProductCovariance::operator()(uint32_t a, uint32_t b) const {
    float product = 1;
    for (const Dimension& d : dimensions_) product *= tables_[d.table + d.values[a] * d.count + d.values[b]];
    return product;
}

double ProductCovariance::noise() const { return std::exp(settings_.back()); }

// The logarithm of the samples' likelihood times the beliefs, and its slope by the settings. The variance is integrated out at its best value.
double ProductCovariance::likelihood(std::span<const CostSample> samples, std::vector<double>& slope) const {
    const size_t n = samples.size();
    double mean = 0, squares = 0;
    for (const CostSample& sample : samples) mean += sample.target / static_cast<double>(n);
    for (const CostSample& sample : samples) squares += (sample.target - mean) * (sample.target - mean) / static_cast<double>(n);
    const double deviation = std::sqrt(std::max(squares, 1e-12));
    std::vector<float> matrix(n * n);
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j) matrix[i * n + j] = (*this)(samples[i].index, samples[j].index);
    std::vector<float> lower = matrix;
    for (size_t i = 0; i < n; ++i) lower[i * n + i] += static_cast<float>(noise());
    factorise(lower, n);
    const std::vector<float> root = inverse_of_lower(lower, n);

    // With z = L^-1 y: the fit y' K^-1 y is z'z, K^-1 y is L^-T z, and K^-1 is L^-T L^-1.
    std::vector<float> solved(n, 0), inverse(n * n, 0);
    double determinant = 0, fit = 0;
    for (size_t k = 0; k < n; ++k) {
        const float* __restrict row = &root[k * n];
        double z = 0;
        for (size_t i = 0; i <= k; ++i) z += row[i] * (samples[i].target - mean) / deviation;
        fit += z * z;
        determinant += std::log(lower[k * n + k]);
        for (size_t i = 0; i <= k; ++i) {
            const float factor = row[i];
            float* __restrict out = &inverse[i * n];
            for (size_t j = 0; j <= i; ++j) out[j] += factor * row[j];
            solved[i] += factor * static_cast<float>(z);
        }
    }
    const double variance = std::max(fit / static_cast<double>(n), 1e-9);

    // The slope by each entry of each dimension's table, then by what the entries are made of.
    slope.assign(settings_.size(), 0);
    std::vector<float> by_entry(tables_.size(), 0), reciprocal(tables_.size());
    for (size_t entry = 0; entry < tables_.size(); ++entry) reciprocal[entry] = 1 / tables_[entry];
    for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < i; ++j) {
            const float by_pair = (solved[i] * solved[j] / static_cast<float>(variance) - inverse[i * n + j]) * matrix[i * n + j];
            for (const Dimension& d : dimensions_) {
                const size_t entry = d.table + d.values[samples[i].index] * d.count + d.values[samples[j].index];
                by_entry[entry] += by_pair * reciprocal[entry];
            }
        }
        slope.back() += 0.5 * (solved[i] * solved[i] / variance - inverse[i * n + i]) * noise();
    }
    for (size_t d = 0; d < dimensions_.size(); ++d) {
        const Dimension& dimension = dimensions_[d];
        const Mix settings = mix(d);
        double* out = &slope[d * (likenesses + 1)];
        for (size_t pair = 0; pair < dimension.count * dimension.count; ++pair) {
            const double by_this = by_entry[dimension.table + pair];
            if (by_this == 0) continue;
            for (const Likeness kind : {near, even, equal}) {
                if (settings.weight[kind] == 0) continue;
                const double alike = likeness(dimension, kind, pair, settings.length);
                out[kind] += by_this * settings.weight[kind] * (alike - tables_[dimension.table + pair]) / settings.total;
                if (kind == near)
                    out[likenesses] += by_this * settings.weight[near] * alike * dimension.distance[near][pair] / settings.length / settings.total;
            }
        }
    }
    double result = -determinant - 0.5 * static_cast<double>(n) * std::log(variance);
    for (size_t i = 0; i < settings_.size(); ++i) {
        const bool is_length = i % (likenesses + 1) == likenesses;
        const Belief& belief = i + 1 == settings_.size() ? noise_belief : is_length ? length_belief : weight_belief;
        const double off = (settings_[i] - belief.center) / belief.deviation;
        result -= 0.5 * off * off;
        slope[i] = fixed_[i] ? 0 : slope[i] - off / belief.deviation;
    }
    return result;
}

// Each setting goes by its slope's sign, in strides that grow while the sign stays and shrink when it turns: no scale to be chosen.
void ProductCovariance::fit(std::span<const CostSample> samples, int steps) {
    std::vector<double> slope, last(settings_.size(), 0), stride(settings_.size(), 0.2), best = settings_;
    double highest = likelihood(samples, slope);
    for (int step = 0; step < steps; ++step) {
        for (size_t i = 0; i < settings_.size(); ++i) {
            const bool turned = slope[i] * last[i] < 0;
            if (turned) stride[i] *= 0.5;
            if (slope[i] * last[i] > 0) stride[i] = std::min(1.3 * stride[i], 1.0);
            last[i] = turned ? 0 : slope[i];
            if (turned || slope[i] == 0) continue;
            const bool is_noise = i + 1 == settings_.size();
            settings_[i] =
                std::clamp(settings_[i] + std::copysign(stride[i], slope[i]), is_noise ? std::log(1e-4) : least_log_weight, is_noise ? 0.0 : most_log_weight);
        }
        build_tables();
        const double reached = likelihood(samples, slope);
        if (reached <= highest) continue;
        highest = reached;
        best = settings_;
    }
    settings_ = best;
    build_tables();
}

}  // namespace tilewright
