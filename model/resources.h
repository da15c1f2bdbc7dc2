// What a kernel needs of a unit before it is compiled: threads, shared memory, registers.
#pragma once
#include "backends/kernel_source.h"

namespace tilewright {

struct ResourceEstimate {
    int threads = 1;           // per block
    int64_t shared_bytes = 0;  // per block; exact (the kernel asserts it). On the CPU: scratch of a thread, kept in its caches
    int registers = 0;         // per lane, an estimate: accumulators, operands in flight, addresses. 0 on the CPU
    int register_budget = 0;   // per lane, what the compiler must stay within for the config's `blocks`; more would be spilled
};

// unsupported if the architecture has no such kernel. Pure, thread-safe. Checks no limit: occupancy() and space.h do.
Result<ResourceEstimate> estimate_resources(const KernelSpec& spec, const Arch& arch);

// The multiple to which the architecture's kernels pad head dimensions.
int head_dim_granule(const Arch& arch);

}  // namespace tilewright
