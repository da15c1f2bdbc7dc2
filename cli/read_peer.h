// The peer that the CPU's decoding is measured beside: a plain read of memory.
#pragma once
#include <cstdint>
#include <vector>

namespace tilewright::cli {

// Of so much memory that no cache holds it, nor anything else afterwards: who runs in turns with it finds the caches cold, as it does.
class ReadPeer {
public:
    // Takes twice the last-level cache, of `cache_bytes`, at least 512 MiB, and writes it once.
    ReadPeer(int64_t cache_bytes, int threads);
    // Reads it all, each chunk of 1 MiB by one of the threads; GB/s by the clock on the wall.
    double run() const;

private:
    std::vector<uint64_t> memory_;
    int threads_;
};

}  // namespace tilewright::cli
