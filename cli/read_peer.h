// The peer that the CPU's decoding is measured beside: a plain read of as much memory.
#pragma once
#include <cstdint>
#include <vector>

namespace tilewright::cli {

class ReadPeer {
public:
    // Takes `bytes` of memory, rounded up to chunks of 1 MiB, and writes it once.
    ReadPeer(int64_t bytes, int threads);
    // Reads it all, a few times if it is little, each chunk by one of the threads; GB/s by the clock on the wall.
    double run() const;

private:
    std::vector<uint64_t> memory_;
    int threads_;
    int64_t passes_;
};

}  // namespace tilewright::cli
