// An abstract search space: its index, neighbourhoods and regression features.
#include "tuner/search_space.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tilewright {
namespace {

bool same_row(std::span<const uint16_t> a, std::span<const uint16_t> b) { return std::ranges::equal(a, b); }

// How often 2 divides a value, the same for 0 as for a value that is no integer: never.
int twos(double value) {
    const double size = std::fabs(value);
    if (size < 1 || size > 0x1p52 || size != std::floor(size)) return 0;
    return std::countr_zero(static_cast<uint64_t>(size));
}

// Ranks among the distinct values, squeezed into a byte.
std::vector<uint8_t> ranks(const std::vector<double>& values) {
    std::vector<double> distinct = values;
    std::ranges::sort(distinct);
    // Products of equal value can differ in the last bit: numbers closer than that are one.
    distinct.erase(std::unique(distinct.begin(), distinct.end(), [](double a, double b) { return b - a <= 1e-9 * std::fabs(b); }), distinct.end());
    const double scale = distinct.size() > 256 ? 255.0 / static_cast<double>(distinct.size() - 1) : 1;
    std::vector<uint8_t> result;
    result.reserve(values.size());
    for (const double value : values) {
        const auto place = std::upper_bound(distinct.begin(), distinct.end(), value) - distinct.begin() - 1;
        result.push_back(static_cast<uint8_t>(std::lround(static_cast<double>(std::max<ptrdiff_t>(place, 0)) * scale)));
    }
    return result;
}

}  // namespace

Result<SearchSpace> SearchSpace::create(std::vector<SearchParameter> parameters, std::vector<uint16_t> rows, std::vector<double> prior,
                                        std::vector<uint32_t> seeds) {
    const size_t width = parameters.size();
    if (width == 0) return invalid_argument("a search space needs at least one parameter");
    for (const SearchParameter& parameter : parameters) {
        const size_t count = parameter.labels.size();
        if (count == 0 || count > 65535)
            return invalid_argument("parameter '" + parameter.name + "' has " + std::to_string(count) + " values; 1 to 65535 are possible");
        if (!parameter.positions.empty() && (parameter.positions.size() != count || !std::ranges::is_sorted(parameter.positions, std::less_equal<>())))
            return invalid_argument("parameter '" + parameter.name + "': positions must be strictly ascending, one per value");
    }
    if (rows.size() % width != 0) return invalid_argument(std::to_string(rows.size()) + " value indices do not divide into rows of " + std::to_string(width));
    if (rows.size() / width > 0x7fffffff) return invalid_argument(std::to_string(rows.size() / width) + " configurations; the limit is 2147483647");
    SearchSpace space;
    space.size_ = static_cast<uint32_t>(rows.size() / width);
    space.parameters_ = std::move(parameters);
    space.rows_ = std::move(rows);
    TILEWRIGHT_RETURN_IF_ERROR(space.set_guidance(std::move(prior), std::move(seeds)));
    space.slots_.assign(std::bit_ceil(size_t{space.size_} * 2 + 2), 0);
    for (uint32_t index = 0; index < space.size_; ++index) {
        const auto row = space.row(index);
        for (size_t i = 0; i < width; ++i)
            if (row[i] >= space.parameters_[i].labels.size())
                return invalid_argument("configuration " + std::to_string(index) + " has value index " + std::to_string(row[i]) + " of parameter '" +
                                        space.parameters_[i].name + "', which has " + std::to_string(space.parameters_[i].labels.size()));
        if (space.find(row)) return invalid_argument("configuration " + std::to_string(index) + " is listed twice");
        size_t slot = space.hash(row) & (space.slots_.size() - 1);
        while (space.slots_[slot] != 0) slot = (slot + 1) & (space.slots_.size() - 1);
        space.slots_[slot] = index + 1;
    }
    space.build_features();
    return space;
}

Status SearchSpace::set_guidance(std::vector<double> prior, std::vector<uint32_t> seeds) {
    if (!prior.empty() && prior.size() != size_)
        return invalid_argument(std::to_string(prior.size()) + " prior costs for " + std::to_string(size_) + " configurations");
    for (const uint32_t seed : seeds)
        if (seed >= size_) return invalid_argument("seed " + std::to_string(seed) + " in a space of " + std::to_string(size_));
    prior_ = std::move(prior);
    seeds_ = std::move(seeds);
    return {};
}

uint64_t SearchSpace::hash(std::span<const uint16_t> row) const {
    uint64_t value = 0x9e3779b97f4a7c15u;
    for (const uint16_t index : row) {
        value = (value ^ index) * 0xff51afd7ed558ccdu;
        value ^= value >> 32;
    }
    return value;
}

std::optional<uint32_t> SearchSpace::find(std::span<const uint16_t> wanted) const {
    for (size_t slot = hash(wanted) & (slots_.size() - 1); slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1))
        if (same_row(row(slots_[slot] - 1), wanted)) return slots_[slot] - 1;
    return std::nullopt;
}

void SearchSpace::append_if_legal(std::vector<uint32_t>& list, std::span<const uint16_t> wanted) const {
    if (const auto index = find(wanted)) list.push_back(*index);
}

std::vector<uint32_t> SearchSpace::neighbours(uint32_t index, Neighbourhood kind) const {
    std::vector<uint32_t> list;
    const auto origin = row(index);
    std::vector<uint16_t> moved(origin.begin(), origin.end());
    const auto values = [this](size_t i) { return static_cast<int>(parameters_[i].labels.size()); };
    for (size_t i = 0; i < moved.size(); ++i) {
        if (kind == Neighbourhood::pair_step) {
            for (size_t j = i + 1; j < moved.size(); ++j)
                for (int direction = 0; direction < 4 && !parameters_[i].positions.empty() && !parameters_[j].positions.empty(); ++direction) {
                    const int a = origin[i] + (direction & 1 ? 1 : -1), b = origin[j] + (direction & 2 ? 1 : -1);
                    if (a < 0 || a >= values(i) || b < 0 || b >= values(j)) continue;
                    moved[i] = static_cast<uint16_t>(a);
                    moved[j] = static_cast<uint16_t>(b);
                    append_if_legal(list, moved);
                    moved[j] = origin[j];
                }
        } else if (kind == Neighbourhood::one || parameters_[i].positions.empty()) {
            for (int value = 0; value < values(i); ++value) {
                moved[i] = static_cast<uint16_t>(value);
                if (value != origin[i]) append_if_legal(list, moved);
            }
        } else {
            for (const int direction : {-1, 1}) {
                const size_t before = list.size();
                for (int value = origin[i] + direction; value >= 0 && value < values(i) && list.size() == before; value += direction) {
                    moved[i] = static_cast<uint16_t>(value);
                    append_if_legal(list, moved);
                }
            }
        }
        moved[i] = origin[i];
    }
    return list;
}

void SearchSpace::build_features() {
    struct Feature {
        size_t first, second;  // equal: a function of one parameter
        std::vector<uint8_t> table;
    };
    std::vector<Feature> features;
    const auto varies = [](const SearchParameter& parameter) { return parameter.labels.size() > 1; };
    for (size_t i = 0; i < parameters_.size(); ++i) {
        const SearchParameter& one = parameters_[i];
        if (!varies(one)) continue;
        std::vector<double> rank(one.labels.size()), evenness;
        for (size_t value = 0; value < rank.size(); ++value) rank[value] = static_cast<double>(value);
        features.push_back({i, i, ranks(rank)});
        for (const double position : one.positions) evenness.push_back(twos(position));
        if (rank.size() > 2 && !evenness.empty()) features.push_back({i, i, ranks(evenness)});
        for (size_t j = i + 1; j < parameters_.size(); ++j) {
            const SearchParameter& other = parameters_[j];
            if (!varies(other) || one.positions.empty() || other.positions.empty() || one.positions[0] <= 0 || other.positions[0] <= 0) continue;
            if (one.positions.size() * other.positions.size() > 65536) continue;
            std::vector<double> products;
            for (const double a : one.positions)
                for (const double b : other.positions) products.push_back(a * b);
            features.push_back({i, j, ranks(products)});
        }
    }
    feature_count_ = features.size();
    features_.resize(size_t{size_} * feature_count_);
    for (uint32_t index = 0; index < size_; ++index) {
        const auto values = row(index);
        for (size_t f = 0; f < feature_count_; ++f) {
            const Feature& feature = features[f];
            size_t place = values[feature.first];
            if (feature.first != feature.second) place = place * parameters_[feature.second].labels.size() + values[feature.second];
            features_[size_t{index} * feature_count_ + f] = feature.table[place];
        }
    }
}

}  // namespace tilewright
