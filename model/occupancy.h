// How many blocks a unit (multiprocessor, compute unit, core) holds at once, by the vendors' allocation rules.
#pragma once
#include "backends/arch.h"
#include "backends/backend.h"
#include "model/resources.h"

namespace tilewright {

enum class OccupancyLimit { warps, blocks, registers, shared_memory };
const char* name(OccupancyLimit limit);

struct Occupancy {
    int blocks = 0;  // resident per unit; 0: not even one fits, and `limit` says why
    int warps = 0;   // resident per unit
    OccupancyLimit limit = OccupancyLimit::warps;  // what stops one more block

    // Resident warps over the most that a unit can hold.
    double fraction(const Arch& arch) const { return double(warps) / arch.max_warps_per_unit; }
};

// From threads, shared_bytes and registers_held, be they estimated or read from a compiled object. Pure, thread-safe.
Occupancy occupancy(const ResourceEstimate& resources, const Arch& arch);
// Of a compiled kernel: `source` says its threads and dynamic shared memory, `compiled` its registers and static shared memory.
Occupancy occupancy(const KernelSource& source, const Resources& compiled, const Arch& arch);
// Of a kernel compiled for AMD, the waves of a SIMD as its compiler states them: what registers and LDS allow, where whole blocks may be fewer.
int waves_per_simd(const KernelSource& source, const Resources& compiled, const Arch& arch);
// ok if at least one block fits; otherwise unsupported, naming what is asked for and the limit.
Status fits(const ResourceEstimate& resources, const Arch& arch);

}  // namespace tilewright
