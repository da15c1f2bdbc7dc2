// The analytic model: predicted time of a candidate and which resource bounds it. Estimates rank candidates and explain
// results; they are never reported as measurements.
#pragma once
#include "backends/operation_plan.h"
#include "model/occupancy.h"
#include "model/resources.h"
#include "model/traffic.h"

namespace tilewright {

enum class Bound { matrix, exponential, shared_memory, cache, memory, latency };
const char* name(Bound bound);

struct Prediction {
    double time_us = 0;
    Bound bound = Bound::matrix;  // the largest part of time_us
    ResourceEstimate resources;
    Occupancy occupancy;
    Work work;
    int64_t tiles = 0;       // of queries, over all heads
    double waves = 0;        // tiles over what the device holds at once; the last wave may be partly idle
    double balance = 1;      // useful share of the units' time, 1 without a tail
    // Each alone, with all units busy. Shared memory: operands of the matrix products; on the CPU, copies into packed tiles.
    double matrix_us = 0, exponential_us = 0, shared_memory_us = 0, cache_us = 0, memory_us = 0;
};

// One kernel. unsupported, with value and limit, if not one block fits a unit. `compiled` replaces the estimates where it is not -1.
// Pure, thread-safe, microseconds of host time.
Result<Prediction> predict(const KernelSpec& spec, const Arch& arch, const Resources* compiled = nullptr);

// The whole operation on dense, aligned tensors: its kernels one after another. Times and work are sums, the rest is that of the kernel that takes
// the longest.
Result<Prediction> predict(const Problem& problem, const Config& config, const Arch& arch);

// A time that no correct kernel beats on this architecture: compulsory bytes at the full memory rate or useful operations
// at the full matrix rate, whichever is longer, with room for clocks above the table's. Problems that fit the last-level
// cache are not bound by memory.
double roofline_us(const Problem& problem, const Arch& arch);

}  // namespace tilewright
