// A loop shared by a few threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tilewright {

// Calls body(0) ... body(count - 1), each once, in any order, from `threads` threads (0: one a processor), and returns when
// all are done. The body must not throw.
template <class Body>
void parallel_for(int64_t count, int threads, const Body& body) {
    if (threads <= 0) threads = std::max(1u, std::thread::hardware_concurrency());
    std::atomic<int64_t> next = 0;
    auto work = [&] {
        for (int64_t i; (i = next.fetch_add(1)) < count;) body(i);
    };
    std::vector<std::jthread> helpers;
    for (int64_t t = 1; t < std::min<int64_t>(threads, count); ++t) helpers.emplace_back(work);
    work();
}

}  // namespace tilewright
