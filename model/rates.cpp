// Work of backward and decode kernels, and the time that it takes at the architecture's rates.
#include "model/rates.h"

#include <algorithm>
#include <cmath>

#include "kernels/parameters.h"

namespace tilewright {
namespace {

// Shares of the data sheet's rates that kernels were seen to reach.
constexpr double matrix_share = 0.7, memory_share = 0.9;
// Instructions per score beside the exponential: scale, difference, products, two conversions.
constexpr double vector_operations = 12;
// A multiprocessor must have so many bytes under way for the full memory rate (4.8 TB/s over 132 of them, for a microsecond).
constexpr double bytes_under_way = 36e3;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

double matrix_flops_per_us(const KernelSpec& spec, const Arch& arch) {
    bool floats = spec.problem.dtype == DType::fp32 || arch.family == Family::cpu;
    return (floats ? arch.matrix_tflops_32bit : arch.matrix_tflops_16bit) * 1e6 * matrix_share;
}

double sum_bytes(const Problem& p) { return kernel::backward_sum_columns(static_cast<int>(p.head_dim)) * double(sizeof(float)); }  // of a query

// Products of the pairs of tiles that meet. P and dS are computed again in every pass.
Work work_of_pass(const KernelSpec& spec, const TileCounts& counts) {
    const Problem& p = spec.problem;
    double pairs = counts.kv_tiles * double(counts.heads) * spec.config.block_q * spec.config.block_kv, d = double(p.head_dim), d_v = double(p.head_dim_v);
    double columns = d;  // S
    if (gives_scored(spec.kind)) columns += d_v + d;
    if (gives_carried(spec.kind) || gives_bias(spec.kind)) columns += d_v;
    bool over_keys = is_over_keys(spec.kind);
    double owned = over_keys ? double(p.batch * p.heads_kv * p.seq_kv) : double(p.batch * p.heads_q * p.seq_q), element = double(size_of(p.dtype));
    double walked = counts.kv_tiles * double(counts.heads) * (over_keys ? spec.config.block_q : spec.config.block_kv);
    double sums = over_keys && spec.config.dq ? 2 * pairs / spec.config.block_kv * sum_bytes(p) : 0;  // of dQ, whose product is then this pass's
    if (sums > 0) columns += d;
    double bias = p.bias ? pairs * element * (gives_bias(spec.kind) ? 2 : 1) : 0;  // read, and its gradient written
    return {(2 * owned + walked) * (d + d_v) * element + bias + sums, 2 * pairs * columns, pairs};
}

// Rows that are read and written once: of the epilogue the sums and dQ, else out, dOut and the statistics. A persistent pass over keys does both.
Work work_of_rows(const KernelSpec& spec) {
    const Problem& p = spec.problem;
    if (spec.config.persistent) return {};
    double rows = double(p.batch * p.heads_q * p.seq_q);
    if (spec.kind == KernelKind::attention_backward_epilogue) return {rows * (sum_bytes(p) + double(p.head_dim) * double(size_of(p.dtype))), 0, 0};
    return {rows * (2 * double(p.head_dim_v) * double(size_of(p.dtype)) + 12), 0, 0};
}

// Keys and values once for every block of rows; parts of sequences are written and read again.
Work work_of_decode(const KernelSpec& spec, const Arch& arch, double units) {
    const Problem& p = spec.problem;
    int64_t group = p.heads_q / p.heads_kv, blocks = divide_up(std::max<int64_t>(1, p.seq_q * group), spec.config.block_q);
    double keys = 0, element = double(size_of(p.dtype));
    for (int32_t length : kv_lengths(p)) keys += double(divide_up(length, spec.config.block_kv) * spec.config.block_kv);
    if (p.window_left >= 0) keys = std::min(keys, double(p.batch) * double(p.window_left + p.seq_q + spec.config.block_kv));
    double pairs = keys * double(p.heads_kv * blocks * spec.config.block_q);
    double read = keys * double(p.heads_kv) * double(p.head_dim + p.head_dim_v) * element;
    if (blocks > 1 && read > double(arch.last_level_cache_bytes)) read *= 1.05;  // blocks of rows walk together: the cache serves all but the first
    double parts = units > double(p.heads_kv * blocks) ? 2 * units * spec.config.block_q * double(p.head_dim_v + 2) * 4 : 0;
    return {read + 2 * parts, 2 * pairs * double(p.head_dim + p.head_dim_v), pairs};
}

}  // namespace

Prediction predict_by_rates(const KernelSpec& spec, const Arch& arch, Prediction result) {
    const Problem& p = spec.problem;
    const Config& c = spec.config;
    bool cpu = arch.family == Family::cpu;
    double launch_us = cpu ? 2 : 4, reach = 1;
    if (spec.kind == KernelKind::attention_decode) {
        double units = double(units_for(spec, arch));
        result.work = work_of_decode(spec, arch, units);
        result.tiles = int64_t(units);
        double under_way = result.occupancy.blocks * c.stages * double(c.block_kv * (p.head_dim + p.head_dim_v)) * double(size_of(p.dtype));
        if (!cpu) reach = std::min({1.0, under_way / bytes_under_way, units / arch.units});
    } else if (!is_over_keys(spec.kind) && !gives_bias(spec.kind) && spec.kind != KernelKind::attention_backward_queries) {  // of the backward, row by row
        result.work = work_of_rows(spec);
        result.tiles = p.batch * p.heads_q * divide_up(p.seq_q, kernel::backward_query_block);
    } else {
        TileCounts counts = count_tiles(p, c);
        result.work = work_of_pass(spec, counts);
        result.tiles = is_over_keys(spec.kind) ? p.batch * p.heads_kv * divide_up(p.seq_kv, c.block_kv) : p.batch * p.heads_q * divide_up(p.seq_q, c.block_q);
    }
    result.time_us = launch_us, result.bound = Bound::latency;
    if (result.tiles == 0) return result;
    double resident = std::max(1.0, double(arch.units) * std::max(1, result.occupancy.blocks));
    result.waves = double(result.tiles) / resident;
    result.balance = std::min(1.0, result.waves / std::ceil(result.waves));
    double cycles = arch.units * arch.clock_ghz * 1e3;
    result.matrix_us = result.work.matrix_flops / matrix_flops_per_us(spec, arch);
    result.exponential_us = result.work.exponentials * (1 / (arch.exponentials_per_cycle_per_unit * cycles) + vector_operations / (arch.matrix_tflops_32bit * 0.5e6));
    double least = std::min(result.work.bytes, compulsory_bytes(p));
    result.memory_us = (spec.kind == KernelKind::attention_decode ? result.work.bytes : least) / (arch.memory_gbps * 1e3 * memory_share * std::max(0.05, reach));
    // A tile's vector work hides half behind the products of others; decoding waits for memory alone.
    double larger = std::max(result.matrix_us, result.exponential_us), busy = (larger + 0.5 * (result.matrix_us + result.exponential_us - larger)) / result.balance;
    // A step's barriers.
    double step_cycles = cpu ? 60.0 * c.block_q : 400, steps = result.work.exponentials / std::max(1, c.block_q * c.block_kv);
    busy += step_cycles * steps / std::max(1.0, double(std::max(1, result.occupancy.blocks)) * cycles);
    result.time_us = launch_us + std::max(busy, result.memory_us);
    if (result.memory_us >= busy) result.bound = Bound::memory;
    else result.bound = result.matrix_us >= result.exponential_us ? Bound::matrix : Bound::exponential;
    return result;
}

Result<Prediction> predict(const Problem& problem, const Config& config, const Arch& arch) {
    TILEWRIGHT_ASSIGN_OR_RETURN(OperationPlan plan, plan_operation(problem, config, arch, dense_traits(problem)));
    Prediction total;
    double time_us = 0, longest = -1;
    Work work;
    for (KernelSpec& spec : plan.kernels) {
        spec.config.units = config.units;
        TILEWRIGHT_ASSIGN_OR_RETURN(Prediction one, predict(spec, arch));
        time_us += one.time_us;
        work.bytes += one.work.bytes, work.matrix_flops += one.work.matrix_flops, work.exponentials += one.work.exponentials;
        if (one.time_us > longest) longest = one.time_us, total = one;
    }
    total.time_us = time_us, total.work = work;
    return total;
}

}  // namespace tilewright
