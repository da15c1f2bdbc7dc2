// Sums of chunks of memory.
#include "cli/read_peer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "verify/parallel.h"

namespace tilewright::cli {
namespace {

constexpr int64_t chunk = (1 << 20) / sizeof(uint64_t);
constexpr int64_t least_bytes = int64_t{1} << 29;  // beside which starting threads takes no time

using Vector __attribute__((vector_size(16))) = uint64_t;

// In as many sums as keep loads independent.
uint64_t sum_of(const uint64_t* words) {
    Vector sums[8] = {};
    for (int64_t i = 0; i < chunk; i += 16)
        for (int n = 0; n < 8; ++n) {
            Vector x;
            std::memcpy(&x, words + i + 2 * n, sizeof x);
            sums[n] += x;
        }
    for (int n = 1; n < 8; ++n) sums[0] += sums[n];
    return sums[0][0] + sums[0][1];
}

}  // namespace

ReadPeer::ReadPeer(int64_t bytes, int threads) : threads_(threads) {
    int64_t words = bytes / int64_t(sizeof(uint64_t));
    memory_.assign(size_t((words / chunk + 1) * chunk), 1);
    passes_ = least_bytes / std::max(bytes, int64_t{1}) + 1;
}

double ReadPeer::run() const {
    std::atomic<uint64_t> total = 0;
    int64_t chunks = int64_t(memory_.size()) / chunk;
    auto start = std::chrono::steady_clock::now();
    parallel_for(chunks * passes_, threads_, [&](int64_t i) { total += sum_of(memory_.data() + i % chunks * chunk); });
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // Every word is 1: a sum that nobody looks at would not be computed.
    uint64_t words = uint64_t(passes_) * memory_.size();
    return total == words ? double(words * sizeof(uint64_t)) / seconds * 1e-9 : 0;
}

}  // namespace tilewright::cli
