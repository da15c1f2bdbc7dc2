// What a kernel needs of a unit before it is compiled: threads, shared memory, registers.
#pragma once
#include "backends/kernel_source.h"

namespace tilewright {

struct ResourceEstimate {
    int threads = 1;           // per block
    int64_t shared_bytes = 0;  // per block; exact (the kernel asserts it). On the CPU: scratch of a thread, kept in its caches
    int registers = 0;         // per lane, an estimate: accumulators, operands in flight, addresses. 0 on the CPU
    int register_budget = 0;   // per lane, what is left for them with the config's `workers` and `blocks`; more would be spilled
    int registers_held = 0;    // per lane, what a resident block keeps from others: what occupancy follows from
    int64_t padded_dims = 0;   // head dimensions of key and value together, as the products compute them
};

// Which family's kernel runs: sm_90a falls back to that of sm_80 where the copy engine cannot serve (fp32, odd head dims).
Family kernel_family(const KernelSpec& spec, const Arch& arch);

// unsupported if the architecture has no such kernel. Pure, thread-safe. Checks no limit: occupancy() and space.h do.
// `workers` must be positive.
Result<ResourceEstimate> estimate_resources(const KernelSpec& spec, const Arch& arch);

}  // namespace tilewright
