// A counter in device memory for every launch that may run beside another: kernels deal out their tiles with it.
#pragma once
#include <mutex>
#include <unordered_map>
#include <vector>

#include "backends/nvidia/driver.h"

namespace tilewright::nvidia {

// A kernel leaves its counter at zero, so launches that follow each other on one stream share one. Launches that are being
// captured into a graph get one each, for the life of this object: a graph may be replayed beside anything. Thread-safe.
// The device's context must be current in every call.
class TileCounters {
public:
    static constexpr int counters_per_chunk = 16384;
    explicit TileCounters(const Driver& driver) : driver_(driver) {}
    TileCounters(const TileCounters&) = delete;
    TileCounters& operator=(const TileCounters&) = delete;

    Status reserve();  // memory for the first counters, so that launches need not allocate
    // The counter for a launch on `stream`.
    Result<unsigned*> counter(Stream stream);
    Status release();  // frees the memory; nothing may be running

private:
    Result<unsigned*> next();  // an unused one; needs mutex_
    Status grow();

    const Driver& driver_;
    std::mutex mutex_;
    std::unordered_map<unsigned long long, unsigned*> of_stream_;  // by the driver's id, which it never uses again
    std::vector<DevicePointer> chunks_;
    int used_ = counters_per_chunk;  // of the last chunk
};

}  // namespace tilewright::nvidia
