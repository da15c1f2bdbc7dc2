// The analytic model. Its constants were set by hand so that known winners rank first; docs/tuning-engineers.md says how far to
// trust it.
#include "model/model.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

// Share of the data sheet's matrix rate that kernels of whole tiles reach: power and issue limits.
double matrix_efficiency(Family family) {
    switch (family) {
    case Family::cpu: return 0.75;
    case Family::cdna: return 0.6;
    case Family::rdna3:
    case Family::rdna4: return 0.7;
    default: return 0.85;
    }
}

double matrix_flops_per_us(const Problem& problem, const Arch& arch) {
    return (problem.dtype == DType::fp32 ? arch.matrix_tflops_32bit : arch.matrix_tflops_16bit) * 1e6;
}
double cycles_per_us(const Arch& arch) { return arch.clock_ghz * 1e3; }

// Bytes that a unit's warps read from shared memory for the products of one KV tile.
double operand_bytes(const KernelSpec& spec, Family family) {
    const Config& c = spec.config;
    double element = double(size_of(spec.problem.dtype)), d = double(spec.problem.head_dim), dv = double(spec.problem.head_dim_v);
    double kv = element * c.block_kv * (d + dv), query = element * c.block_q * d;
    switch (family) {
    case Family::cpu: return element * c.block_kv * (d + dv);  // copied once per query tile
    case Family::sm90: return c.block_q / 64 * kv + query;
    case Family::rdna3: return c.workers * kv + query * c.block_kv / 16;  // Q is read again for every 16 keys
    default: return c.workers * kv;
    }
}
double shared_bytes_per_cycle(Family family) {
    switch (family) {
    case Family::cpu: return 8;  // converted and transposed, not merely copied
    case Family::rdna3:
    case Family::rdna4: return 256;  // of both compute units
    default: return 128;
    }
}

// Bytes a cycle that the last cache shared by all units gives to each of them.
double cache_bytes_per_cycle(Family family) {
    switch (family) {
    case Family::cpu: return 8;
    case Family::cdna: return 64;
    case Family::rdna3:
    case Family::rdna4: return 128;
    default: return 32;
    }
}

// Bytes that reach memory: what all concurrent heads read fits the last-level cache, or part of it is read again.
double memory_bytes(const Problem& problem, const Config& config, const Arch& arch, const TileCounts& counts, double resident_blocks, const Work& work) {
    double least = std::min(work.bytes, compulsory_bytes(problem));
    double head_bytes = double(problem.seq_kv) * (problem.head_dim + problem.head_dim_v) * size_of(problem.dtype);
    double group = config.packs_heads ? 1 : double(problem.heads_q) / problem.heads_kv;
    double at_once = std::min(double(counts.heads), resident_blocks);
    if (config.section_kb > 0 && head_bytes > 0) at_once = std::min(at_once, std::max(1.0, std::floor(config.section_kb * 1024.0 / head_bytes)) * group);
    double footprint = at_once / group * head_bytes, cache = double(arch.last_level_cache_bytes);
    double missed = footprint > cache ? 1 - cache / footprint : 0;
    return least + missed * (work.bytes - least);
}

// Concurrent streams of work on a unit: while one multiplies, another computes exponentials.
double streams(const KernelSpec& spec, Family family, const Arch& arch, const ResourceEstimate& resources, double blocks) {
    double streams = 1;
    if (family == Family::sm90) streams = blocks * (spec.config.block_q / 64);
    else if (family != Family::cpu) streams = blocks * resources.threads / arch.warp_size / arch.simds_per_unit;
    if (family != Family::sm90) return streams;  // elsewhere products are not asynchronous
    return streams * (spec.config.overlapped ? 1.5 : 1) * (spec.config.turns ? 1.2 : 1);
}

}  // namespace

const char* name(Bound bound) {
    switch (bound) {
    case Bound::matrix: return "matrix";
    case Bound::exponential: return "exponential";
    case Bound::shared_memory: return "shared memory";
    case Bound::cache: return "cache";
    case Bound::memory: return "memory";
    case Bound::latency: return "latency";
    }
    return "unknown";
}

Result<Prediction> predict(const KernelSpec& spec, const Arch& arch, const Resources* compiled) {
    Prediction result;
    TILEWRIGHT_ASSIGN_OR_RETURN(result.resources, estimate_resources(spec, arch));
    if (compiled && compiled->registers > 0) {
        result.resources.registers = compiled->registers;  // AGPRs counted in
        result.resources.registers_held = result.resources.registers;
    }
    TILEWRIGHT_RETURN_IF_ERROR(fits(result.resources, arch));
    result.occupancy = occupancy(result.resources, arch);
    const Problem& problem = spec.problem;
    const Config& config = spec.config;
    TileCounts counts = count_tiles(problem, config);
    result.work = tiled_work(problem, config, result.resources.padded_dims);
    result.tiles = counts.heads * counts.query_tiles;
    Family family = kernel_family(spec, arch);
    bool cpu = family == Family::cpu;
    double launch_us = cpu ? 2 : 4;
    result.time_us = launch_us;
    result.bound = Bound::latency;
    if (result.tiles == 0) return result;

    double units = arch.units, resident = units * result.occupancy.blocks, kv_tiles = counts.kv_tiles * counts.heads;
    result.waves = result.tiles / resident;
    // The units share the tiles evenly but for the last round, which under a mask is filled with the shortest tiles.
    double per_unit = kv_tiles / units, rounds = std::ceil(result.tiles / units) * counts.kv_tiles / counts.query_tiles;
    bool uniform = counts.longest * counts.query_tiles <= counts.kv_tiles * 1.01;
    double span = uniform ? rounds : std::max(counts.longest, per_unit + counts.longest / 2);
    result.balance = span > 0 ? std::min(1.0, per_unit / span) : 1;

    double cycles = units * cycles_per_us(arch);
    constexpr double vector_operations = 7;  // of the softmax, per score, beside the exponential
    result.matrix_us = result.work.matrix_flops / (matrix_flops_per_us(problem, arch) * matrix_efficiency(family));
    result.exponential_us = result.work.exponentials * (1 / (arch.exponentials_per_cycle_per_unit * cycles) + vector_operations / (arch.matrix_tflops_32bit * 0.5e6));
    result.shared_memory_us = operand_bytes(spec, family) * kv_tiles / (shared_bytes_per_cycle(family) * cycles);
    result.cache_us = result.work.bytes / (cache_bytes_per_cycle(family) * cycles);
    result.memory_us = memory_bytes(problem, config, arch, counts, resident, result.work) / (arch.memory_gbps * 1e3);

    double blocks = std::min<double>(result.occupancy.blocks, std::ceil(result.tiles / units));
    double n = streams(spec, family, arch, result.resources, blocks);
    // wgmma reads shared memory by itself and runs beside the softmax of other streams; elsewhere a warp loads its operands
    // between its products, half hidden, and only other warps hide the rest.
    bool asynchronous = family == Family::sm90;
    double longest = std::max({result.matrix_us, result.exponential_us, result.shared_memory_us});
    double products = result.matrix_us + (asynchronous ? 0 : result.shared_memory_us / 2), hidden = std::max(1.0, asynchronous ? n * n : n);
    double base = std::max(longest, products), rest = products + result.exponential_us - base;
    // Barriers and row maxima of every KV tile; where a single tile is in flight, its loads are waited for as well.
    bool nvidia = arch.backend == "nvidia";
    double tile_cycles = cpu ? 0 : nvidia && config.stages == 1 ? 1200 : 400;
    double busy = base + std::max(0.0, rest) / hidden + tile_cycles * kv_tiles / cycles / std::max(1.0, n);
    busy /= std::min(1.0, n) * result.balance;
    if (int spilled = result.resources.registers - result.resources.register_budget; !compiled && spilled > 0) busy *= 1 + 3.0 * spilled / result.resources.register_budget;
    // A query tile's first loads and last stores are waited for, unless the block goes on to the next.
    double tile_us = cpu ? 0 : std::ceil(result.waves) * (config.persistent ? 0.3 : 1);
    double moved = std::max(result.cache_us, result.memory_us);
    busy += tile_us;
    result.time_us = launch_us + std::max(busy, moved) + 0.1 * std::min(busy, moved);

    result.bound = Bound::matrix;
    double most = result.matrix_us;
    auto consider = [&](double time, Bound bound) {
        if (time > most) most = time, result.bound = bound;
    };
    consider(result.exponential_us, Bound::exponential);
    consider(result.shared_memory_us, Bound::shared_memory);
    consider(result.cache_us, Bound::cache);
    consider(result.memory_us, Bound::memory);
    if (most < result.time_us / 2) result.bound = Bound::latency;
    return result;
}

double roofline_us(const Problem& problem, const Arch& arch) {
    // Boost clocks exceed the table's by less than this; a processor's by more, and its vector units are guessed from flags.
    double margin = arch.family == Family::cpu ? 3 : 1.25;
    double bytes = compulsory_bytes(problem);
    double memory_us = bytes > double(arch.last_level_cache_bytes) ? bytes / (arch.memory_gbps * 1e3) : 0;
    double matrix_us = useful_flops(problem) / matrix_flops_per_us(problem, arch);
    return std::max(memory_us, matrix_us) / margin;
}

}  // namespace tilewright
