// Random numbers that are the same on every machine and standard library: a fixed seed gives fixed proposals.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace tilewright {

// SplitMix64: one multiply-xor chain per number, any seed is a good seed. Not thread-safe; copy freely.
class Random {
public:
    explicit Random(uint64_t seed = 1) : state_(seed) {}
    uint64_t next() {
        uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    // Uniform in [0, bound); bound > 0. The high half of a product: its bias is below bound / 2^32.
    uint32_t below(uint32_t bound) { return static_cast<uint32_t>(((next() >> 32) * bound) >> 32); }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
    double normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * std::numbers::pi * uniform()); }

private:
    uint64_t state_;
};

}  // namespace tilewright
