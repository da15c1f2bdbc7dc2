// Sums of chunks of memory.
#include "cli/read_peer.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "verify/parallel.h"

namespace tilewright::cli {
namespace {

constexpr int64_t chunk = (1 << 20) / sizeof(uint64_t), line = 64 / sizeof(uint64_t);
constexpr int64_t least_bytes = int64_t{1} << 29;  // beside which starting threads takes no time
constexpr int64_t times_cache = 2;  // filled twice over with other things, a cache keeps nothing

// Of one word of each line, each line asked for long before: loads alone, of which a processor looks some way ahead, take a third less out of the memory.
uint64_t sum_of(const uint64_t* words) {
    constexpr int64_t ahead = 16384 / sizeof(uint64_t);
    uint64_t sum = 0;
    for (int64_t i = 0; i < chunk; i += line) __builtin_prefetch(words + std::min(i + ahead, chunk - line), 0, 2), sum += words[i];
    return sum;
}

}  // namespace

ReadPeer::ReadPeer(int64_t cache_bytes, int threads) : threads_(threads) {
    int64_t words = std::max(times_cache * cache_bytes, least_bytes) / int64_t(sizeof(uint64_t));
    memory_.assign(size_t((words / chunk + 1) * chunk), 1);
}

double ReadPeer::run() const {
    std::atomic<uint64_t> total = 0;
    int64_t chunks = int64_t(memory_.size()) / chunk;
    auto start = std::chrono::steady_clock::now();
    parallel_for(chunks, threads_, [&](int64_t i) { total += sum_of(memory_.data() + i * chunk); });
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // Every word is 1: a sum that nobody looks at would not be computed.
    return total == memory_.size() / line ? double(memory_.size() * sizeof(uint64_t)) / seconds * 1e-9 : 0;
}

}  // namespace tilewright::cli
