// Random numbers as a function of (seed, stream, position): equal on every machine, in any order, on any number of threads.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace tilewright {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that scatters neighbouring inputs.
constexpr uint64_t scatter(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

constexpr uint64_t hash(uint64_t seed, uint64_t stream, uint64_t position) {
    return scatter(scatter(scatter(seed + 0x9e3779b97f4a7c15u) + stream) + position);
}

// Standard normal, by Box and Muller from the two halves of one hash.
inline double normal(uint64_t seed, uint64_t stream, uint64_t position) {
    uint64_t bits = hash(seed, stream, position);
    double radius = std::sqrt(-2 * std::log((double(bits >> 32) + 0.5) * 0x1p-32));
    return radius * std::cos(2 * std::numbers::pi * double(bits & 0xffffffffu) * 0x1p-32);
}

}  // namespace tilewright
