// What a strategy sees of a tuning problem: parameters with value lists, and which combinations are legal. Nothing else.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tilewright/status.h"

namespace tilewright {

struct SearchParameter {
    std::string name;
    std::vector<std::string> labels;  // one per value
    std::vector<double> positions;    // the value as a number, strictly ascending; empty: the values have no order
};

enum class Neighbourhood {
    step,       // one parameter, to the nearest legal value on either side (any value, if it has no order)
    one,        // one parameter, to any other value
    pair_step,  // two ordered parameters, one position each way
};

// Safe to share between threads once nobody changes its guidance. A configuration is named by its index, 0 .. size() - 1.
class SearchSpace {
public:
    // `rows` holds parameters.size() value indices per legal configuration. `prior` is empty or one predicted cost (any positive
    // unit) per configuration. `seeds` are configurations to try first. invalid_argument: no parameter, a value index out
    // of range, a repeated configuration, more than 65535 values, a prior or seed that does not fit.
    static Result<SearchSpace> create(std::vector<SearchParameter> parameters, std::vector<uint16_t> rows, std::vector<double> prior = {},
                                      std::vector<uint32_t> seeds = {});

    // Replaces prior and seeds, which must fit as above.
    Status set_guidance(std::vector<double> prior, std::vector<uint32_t> seeds);

    uint32_t size() const { return size_; }
    std::span<const SearchParameter> parameters() const { return parameters_; }
    std::span<const uint16_t> row(uint32_t index) const { return {rows_.data() + size_t{index} * parameters_.size(), parameters_.size()}; }
    std::span<const double> prior() const { return prior_; }
    std::span<const uint32_t> seeds() const { return seeds_; }

    // The index of a row of value indices, if it is legal.
    std::optional<uint32_t> find(std::span<const uint16_t> row) const;
    std::vector<uint32_t> neighbours(uint32_t index, Neighbourhood kind) const;

    // The configuration as small numbers for a regression: each parameter's rank, and for ordered ones what tuning parameters
    // are often about: how often 2 divides the value, and the rank of the product of every two. features() bytes per configuration.
    std::span<const uint8_t> features(uint32_t index) const { return {features_.data() + size_t{index} * feature_count_, feature_count_}; }

private:
    uint64_t hash(std::span<const uint16_t> row) const;
    void build_features();
    void append_if_legal(std::vector<uint32_t>& list, std::span<const uint16_t> row) const;

    uint32_t size_ = 0;
    std::vector<SearchParameter> parameters_;
    std::vector<uint16_t> rows_;
    std::vector<double> prior_;
    std::vector<uint32_t> seeds_;
    std::vector<uint32_t> slots_;  // open addressing from hash(row) to index + 1; 0: empty
    size_t feature_count_ = 0;
    std::vector<uint8_t> features_;
};

}  // namespace tilewright
