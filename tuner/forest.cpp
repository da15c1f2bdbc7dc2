// Growing and asking a forest of extremely randomised trees.
#include "tuner/forest.h"

#include <algorithm>
#include <cmath>

#include "tuner/search_space.h"

namespace tilewright {

void Forest::fit(const SearchSpace& space, std::span<const Sample> samples, Random& random) {
    nodes_.clear();
    std::vector<Sample> shuffled(samples.begin(), samples.end());
    for (size_t& root : roots_) {
        root = nodes_.size();
        nodes_.emplace_back();
        grow(space, root, shuffled, random);
    }
}

void Forest::grow(const SearchSpace& space, size_t node, std::span<Sample> samples, Random& random) {
    float sum = 0, lowest = samples[0].target, highest = lowest;
    for (const Sample& sample : samples) {
        sum += sample.target;
        lowest = std::min(lowest, sample.target);
        highest = std::max(highest, sample.target);
    }
    nodes_[node].value = sum / static_cast<float>(samples.size());
    if (samples.size() < 2 || lowest == highest) return;

    const auto features = static_cast<uint32_t>(space.features(0).size());
    const uint32_t tries = std::max<uint32_t>(3, features / 2);
    float best_gain = -1;
    uint16_t best_feature = 0;
    uint8_t best_threshold = 0;
    for (uint32_t attempt = 0; attempt < tries; ++attempt) {
        const uint32_t feature = random.below(features);
        uint8_t low = 255, high = 0;
        for (const Sample& sample : samples) {
            const uint8_t value = space.features(sample.index)[feature];
            low = std::min(low, value);
            high = std::max(high, value);
        }
        if (low == high) continue;
        const auto threshold = static_cast<uint8_t>(low + random.below(high - low));
        float left_sum = 0, left_count = 0;
        for (const Sample& sample : samples) {
            const float left = space.features(sample.index)[feature] <= threshold ? 1.0f : 0.0f;
            left_sum += left * sample.target;
            left_count += left;
        }
        // The fall of the squared error, up to a constant.
        const float right_count = static_cast<float>(samples.size()) - left_count, right_sum = sum - left_sum;
        const float gain = left_sum * left_sum / left_count + right_sum * right_sum / right_count - sum * sum / static_cast<float>(samples.size());
        if (gain > best_gain) {
            best_gain = gain;
            best_feature = static_cast<uint16_t>(feature);
            best_threshold = threshold;
        }
    }
    if (best_gain < 0) return;
    const auto middle =
        std::partition(samples.begin(), samples.end(), [&](const Sample& sample) { return space.features(sample.index)[best_feature] <= best_threshold; });
    const size_t child = nodes_.size(), left_count = static_cast<size_t>(middle - samples.begin());
    nodes_.resize(child + 2);
    nodes_[node].child = static_cast<int32_t>(child);
    nodes_[node].feature = best_feature;
    nodes_[node].threshold = best_threshold;
    grow(space, child, samples.first(left_count), random);
    grow(space, child + 1, samples.subspan(left_count), random);
}

Forest::Prediction Forest::predict(const SearchSpace& space, uint32_t index) const {
    const uint8_t* features = space.features(index).data();
    double sum = 0, squares = 0;
    for (const size_t root : roots_) {
        const Node* node = &nodes_[root];
        while (node->child >= 0) node = &nodes_[static_cast<size_t>(node->child) + (features[node->feature] > node->threshold ? 1 : 0)];
        sum += node->value;
        squares += static_cast<double>(node->value) * node->value;
    }
    const auto count = static_cast<double>(roots_.size());
    const double mean = sum / count;
    return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
}

}  // namespace tilewright
