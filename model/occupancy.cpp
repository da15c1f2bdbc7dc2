// Resident blocks by the vendors' allocation rules.
#include "model/occupancy.h"

#include <algorithm>

namespace tilewright {
namespace {

int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

int64_t warps_by_registers(int registers, const Arch& arch) {  // of a scheduler
    return arch.registers_per_unit / arch.simds_per_unit / (round_up(registers, arch.register_granularity) * arch.warp_size);
}
int64_t blocks_by_shared_memory(int64_t bytes, const Arch& arch) {
    return arch.shared_bytes_per_unit / round_up(bytes + arch.shared_reserved_per_block, arch.shared_granularity);
}

}  // namespace

const char* name(OccupancyLimit limit) {
    switch (limit) {
    case OccupancyLimit::warps: return "warps";
    case OccupancyLimit::blocks: return "blocks";
    case OccupancyLimit::registers: return "registers";
    case OccupancyLimit::shared_memory: return "shared memory";
    }
    return "unknown";
}

Occupancy occupancy(const ResourceEstimate& resources, const Arch& arch) {
    Occupancy result;
    int warps = (resources.threads + arch.warp_size - 1) / arch.warp_size;
    int64_t least = INT64_MAX;
    auto limit_to = [&](int64_t blocks, OccupancyLimit limit) {
        if (blocks < least) least = blocks, result.limit = limit;
    };
    limit_to(arch.max_warps_per_unit / warps, OccupancyLimit::warps);
    if (resources.threads > arch.max_threads_per_block) limit_to(0, OccupancyLimit::warps);
    // AMD counts work groups by their barriers, and a single wave needs none.
    bool counted = arch.backend != "amd" || warps > 1;
    if (counted) limit_to(arch.max_blocks_per_unit, OccupancyLimit::blocks);
    if (int registers = resources.registers_held; arch.registers_per_unit > 0 && registers > 0) {
        // Each scheduler has its own registers, given to whole warps; a warp cannot straddle two schedulers.
        int64_t warps_per_simd = warps_by_registers(registers, arch);
        int64_t warps_of_block_per_simd = round_up(warps, arch.simds_per_unit) / arch.simds_per_unit;
        bool fits = registers <= arch.max_registers_per_thread && warps_of_block_per_simd <= warps_per_simd;
        limit_to(fits ? warps_per_simd * arch.simds_per_unit / warps : 0, OccupancyLimit::registers);
    }
    if (arch.shared_bytes_per_unit > 0 && resources.shared_bytes > 0) {
        limit_to(resources.shared_bytes <= arch.shared_bytes_per_block ? blocks_by_shared_memory(resources.shared_bytes, arch) : 0, OccupancyLimit::shared_memory);
    }
    result.blocks = int(least);
    result.warps = result.blocks * warps;
    return result;
}

Occupancy occupancy(const KernelSource& source, const Resources& compiled, const Arch& arch) {
    ResourceEstimate resources;
    resources.threads = source.threads;
    resources.shared_bytes = source.shared_bytes + std::max<int64_t>(0, compiled.shared_bytes);
    resources.registers_held = compiled.registers;  // AGPRs counted in
    return occupancy(resources, arch);
}

int waves_per_simd(const KernelSource& source, const Resources& compiled, const Arch& arch) {
    const int64_t simds = arch.simds_per_unit, waves = (source.threads + arch.warp_size - 1) / arch.warp_size, bytes = source.shared_bytes + std::max<int64_t>(0, compiled.shared_bytes);
    int64_t least = arch.max_warps_per_unit / simds, blocks = INT64_MAX;
    if (compiled.registers > 0) least = std::min(least, warps_by_registers(compiled.registers, arch));
    if (waves > 1) blocks = arch.max_blocks_per_unit;
    if (bytes > 0) blocks = std::min(blocks, blocks_by_shared_memory(bytes, arch));
    if (blocks < INT64_MAX) least = std::min(least, (blocks * waves + simds - 1) / simds);
    return int(least);
}

Status fits(const ResourceEstimate& resources, const Arch& arch) {
    Occupancy result = occupancy(resources, arch);
    if (result.blocks > 0) return {};
    auto unsupported = [&](const std::string& what, int64_t value, int64_t limit, const std::string& of) {
        return Status(StatusCode::unsupported, what + " is " + std::to_string(value) + "; " + arch.name + " allows " + std::to_string(limit) + " per " + of);
    };
    switch (result.limit) {
    case OccupancyLimit::shared_memory: return unsupported("shared memory in bytes", resources.shared_bytes, arch.shared_bytes_per_block, "block");
    case OccupancyLimit::registers: return unsupported("registers of a block of " + std::to_string(resources.threads) + " threads",
                                                       int64_t(resources.registers_held) * resources.threads, arch.registers_per_unit, "unit");
    default: return unsupported("threads", resources.threads, arch.max_threads_per_block, "block");
    }
}

}  // namespace tilewright
