// A small regression forest over byte features: the search's picture of what it has not measured yet, with its own doubt.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/random.h"

namespace tilewright {

class SearchSpace;

// Extremely randomised trees: every tree sees all samples, splits are drawn at random and the best of a few is kept. Not thread-safe.
class Forest {
public:
    explicit Forest(int trees) : roots_(static_cast<size_t>(trees)) {}

    struct Sample {
        uint32_t index;  // into the space
        float target;
    };
    // Forgets all that was learnt before. At least one sample.
    void fit(const SearchSpace& space, std::span<const Sample> samples, Random& random);

    struct Prediction {
        double mean, deviation;  // of the trees' answers
    };
    Prediction predict(const SearchSpace& space, uint32_t index) const;

private:
    struct Node {
        int32_t child = -1;  // of the smaller side, the other follows it; negative: a leaf
        uint16_t feature = 0;
        uint8_t threshold = 0;  // values up to this go to the smaller side
        float value = 0;        // of a leaf
    };
    void grow(const SearchSpace& space, size_t node, std::span<Sample> samples, Random& random);

    std::vector<size_t> roots_;
    std::vector<Node> nodes_;
};

}  // namespace tilewright
