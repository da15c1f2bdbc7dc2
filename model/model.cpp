// The analytic model. Its constants were set by hand so that known winners rank first; docs/tuning-engineers.md says how far to
// trust it.
#include "model/model.h"

#include "model/rates.h"

#include <algorithm>
#include <cmath>

#include "kernels/resources_nvidia.h"
#include "model/space_check.h"

namespace tilewright {
namespace {

// Share of the data sheet's matrix rate that kernels of whole tiles reach: power and issue limits.
double matrix_efficiency(Family family) {
    switch (family) {
    case Family::cpu: return 1;
    case Family::cdna: return 0.6;
    case Family::rdna3:
    case Family::rdna4: return 0.7;
    default: return 0.85;
    }
}

double matrix_flops_per_us(const Problem& problem, const Arch& arch) {
    return (problem.dtype == DType::fp32 ? arch.matrix_tflops_32bit : arch.matrix_tflops_16bit) * 1e6;
}
// What the kernel's products reach. A processor multiplies 16-bit elements as floats, or by dot products that were measured at
// 0.55 of the float rate where the manual has twice.
double reached_flops_per_us(const KernelSpec& spec, Family family, const Arch& arch) {
    if (family == Family::cpu) return arch.matrix_tflops_32bit * 1e6 * (spec.config.dot16 ? 0.55 : 1);
    return matrix_flops_per_us(spec.problem, arch) * matrix_efficiency(family);
}
double cycles_per_us(const Arch& arch) { return arch.clock_ghz * 1e3; }

// Bytes that a unit's warps read from shared memory for the products of one KV tile.
double operand_bytes(const KernelSpec& spec, Family family) {
    const Config& c = spec.config;
    double element = double(size_of(spec.problem.dtype)), d = double(spec.problem.head_dim), dv = double(spec.problem.head_dim_v);
    double kv = element * c.block_kv * (d + dv), query = element * c.block_q * d;
    switch (family) {
    case Family::cpu: return c.block_kv * (d + dv) * (element == 2 ? 0.8 : 0.4 + (d + dv) / 256);  // copied for every query tile; long rows of floats leave the L1
    case Family::sm90: return c.block_q / 64 * kv + query;
    case Family::rdna3: return c.workers * kv + query * c.block_kv / 16;  // Q is read again for every 16 keys
    default: return c.workers * kv;
    }
}
double shared_bytes_per_cycle(Family family) {
    switch (family) {
    case Family::cpu: return 2;  // elements, converted and transposed
    case Family::rdna3:
    case Family::rdna4: return 256;  // of both compute units
    default: return 128;
    }
}

// Bytes a cycle that the last cache shared by all units gives to each of them.
double cache_bytes_per_cycle(Family family) {
    switch (family) {
    case Family::cpu: return 32;
    case Family::cdna: return 64;
    case Family::rdna3:
    case Family::rdna4: return 128;
    default: return 32;
    }
}

double head_bytes_of(const Problem& problem) { return double(keys_together(problem)) * (problem.head_dim + problem.head_dim_v) * size_of(problem.dtype); }

// Query heads (KV heads, where they are packed) of one section, as backends/launch.cpp has them, but for evenness; section_kb is not 0.
double section_heads(const Problem& problem, const Config& config) {
    double group = config.packs_heads ? 1 : double(problem.heads_q) / problem.heads_kv;
    return std::max(1.0, std::floor(config.section_kb * 1024.0 / std::max(1.0, head_bytes_of(problem)))) * group;
}

// Bytes that reach memory: what all concurrent heads read fits the last-level cache, or part of it is read again.
double memory_bytes(const Problem& problem, const Config& config, const Arch& arch, const TileCounts& counts, double resident_blocks, const Work& work) {
    double least = std::min(work.bytes, compulsory_bytes(problem));
    double head_bytes = head_bytes_of(problem);
    double group = config.packs_heads ? 1 : double(problem.heads_q) / problem.heads_kv;
    double at_once = std::min(double(counts.heads), resident_blocks);
    if (config.section_kb > 0 && head_bytes > 0) at_once = std::min(at_once, section_heads(problem, config));
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
    return streams * (spec.config.overlapped ? 1.2 : 1) * (spec.config.turns ? 1.2 : 1);
}

// The units share the tiles evenly but for the last round, which under a mask is filled with the shortest tiles. Where the number of
// sections is known (not 0), the longest tiles of the last must find time beside what is left then.
double balance(const TileCounts& counts, int64_t tiles, double units, double sections) {
    double per_unit = counts.kv_tiles * double(counts.heads) / units;
    bool uniform = counts.longest * double(counts.query_tiles) <= counts.kv_tiles * 1.01;
    double rounds = std::ceil(double(tiles) / units) * counts.kv_tiles / double(counts.query_tiles);
    double last = sections > 0 ? per_unit / sections : 0;
    double masked = sections > 0 ? per_unit - last + std::max(counts.longest, last + counts.longest / 8) : std::max(counts.longest, per_unit + counts.longest / 2);
    double span = uniform ? rounds : masked;
    return span > 0 ? std::min(1.0, per_unit / span) : 1;
}

// What the order of heads costs on sm_90a beside balance, as measured on an H200: 1 % for each doubling of a section beyond an eighth of the cache; under a mask, where the
// longest tiles of a section come first, for each halving below a half.
double order_cost(const Problem& problem, const Config& config, const Arch& arch) {
    if (config.section_kb == 0) return 1;
    double doublings = std::log2(config.section_kb / double(section_kb_of(arch, 8)));
    bool masked = problem.window_left != -1 || problem.window_right != -1;
    return 1 + 0.01 * std::clamp(masked ? 2 - doublings : doublings, 0.0, 2.0);
}

void take_each_alone(Prediction& p, const KernelSpec& spec, Family family, const Arch& arch, const TileCounts& counts, double resident) {
    constexpr double vector_operations = 7;  // of the softmax, per score, beside the exponential
    double cycles = arch.units * cycles_per_us(arch), kv_tiles = counts.multiplied * double(counts.heads);
    p.matrix_us = p.work.matrix_flops / reached_flops_per_us(spec, family, arch);
    p.exponential_us = p.work.exponentials * (1 / (arch.exponentials_per_cycle_per_unit * cycles) + vector_operations / (arch.matrix_tflops_32bit * 0.5e6));
    p.shared_memory_us = operand_bytes(spec, family) * kv_tiles / (shared_bytes_per_cycle(family) * cycles);
    p.cache_us = p.work.bytes / (cache_bytes_per_cycle(family) * cycles);
    p.memory_us = memory_bytes(spec.problem, spec.config, arch, counts, resident, p.work) / (arch.memory_gbps * 1e3);
}

// The time of the units' own work together. wgmma reads shared memory by itself and runs beside the softmax of other streams;
// elsewhere a warp loads its operands between its products, half hidden, and only other warps hide its softmax. A processor's
// core hides nothing.
double busy_us(const Prediction& p, const KernelSpec& spec, Family family, const Arch& arch, const TileCounts& counts) {
    const Config& config = spec.config;
    bool cpu = family == Family::cpu, asynchronous = family == Family::sm90;
    double blocks = std::min<double>(p.occupancy.blocks, std::ceil(double(p.tiles) / arch.units));
    double n = streams(spec, family, arch, p.resources, blocks), hidden = std::max(1.0, asynchronous ? n * n : n);
    double products = p.matrix_us + (asynchronous ? 0 : cpu ? 1 : 0.5) * p.shared_memory_us;
    if (cpu && config.overlapped) products *= 1.06;  // scores are copied, and nothing is gained
    double base = std::max({products, p.exponential_us, p.shared_memory_us}), rest = products + p.exponential_us - base;
    // Barriers and row maxima of every KV tile; where a single tile is in flight, its loads are waited for as well. On a
    // processor the rows of the output are loaded and stored.
    double tile_cycles = cpu ? 36.0 * config.block_q : asynchronous ? (config.stages == 1 ? 1800 : config.stages == 2 ? 540 : 520) : arch.backend == "nvidia" && config.stages == 1 ? 1200 : 400;
    double tiles_us = tile_cycles * counts.multiplied * double(counts.heads) / (arch.units * cycles_per_us(arch)) / std::max(1.0, n);
    // A query tile's first loads and last stores are waited for, unless the block goes on to the next.
    double ends_us = cpu ? 0 : std::ceil(p.waves) * (config.persistent ? 0.3 : 1);
    return (base + rest / hidden + tiles_us) / (std::min(1.0, n) * p.balance) + ends_us;
}

Bound largest(const Prediction& p) {
    Bound bound = Bound::matrix;
    double most = p.matrix_us;
    auto consider = [&](double time, Bound other) {
        if (time > most) most = time, bound = other;
    };
    consider(p.exponential_us, Bound::exponential);
    consider(p.shared_memory_us, Bound::shared_memory);
    consider(p.cache_us, Bound::cache);
    consider(p.memory_us, Bound::memory);
    return most < p.time_us / 2 ? Bound::latency : bound;
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
    if (spec.kind != KernelKind::attention_forward) return predict_by_rates(spec, arch, std::move(result));
    Family family = kernel_family(spec, arch);
    int64_t rows_apart = family == Family::sm90 ? kernel::sm90_worker_rows : 0;
    TileCounts counts = count_tiles(spec.problem, spec.config, rows_apart);
    result.work = tiled_work(spec.problem, spec.config, result.resources.padded_dims, rows_apart);
    result.tiles = counts.heads * counts.query_tiles;
    double launch_us = family == Family::cpu ? 2 : 4;
    result.time_us = launch_us;
    result.bound = Bound::latency;
    if (result.tiles == 0) return result;

    double units = arch.units, resident = units * result.occupancy.blocks;
    result.waves = double(result.tiles) / resident;
    double sections = family != Family::sm90 ? 0 : spec.config.section_kb > 0 ? std::ceil(std::max(1.0, counts.heads / section_heads(spec.problem, spec.config))) : 1;
    result.balance = balance(counts, result.tiles, units, sections);
    take_each_alone(result, spec, family, arch, counts, resident);

    double busy = busy_us(result, spec, family, arch, counts);
    bool spills = !compiled && result.resources.registers > result.resources.register_budget;
    if (spills) busy *= 1 + 3.0 * (result.resources.registers - result.resources.register_budget) / result.resources.register_budget;
    if (family == Family::sm90) busy *= order_cost(spec.problem, spec.config, arch);
    double moved = std::max(result.cache_us, result.memory_us);
    result.time_us = launch_us + std::max(busy, moved) + 0.1 * std::min(busy, moved);
    result.bound = largest(result);
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
