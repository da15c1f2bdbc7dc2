// Kernels and workspace of a backward.
#include "backends/backward_plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "backends/family_text.h"
#include "kernels/resources_nvidia.h"

namespace tilewright {
namespace {

using enum KernelKind;

// What a kernel by mma.sync or in float finds room for. Estimates up to 216 registers were without spills in every head dim and variant
// (tests/kernels/nvidia_backward_text_test.cpp).
bool fits_sm80(const Problem& p, KernelKind kind, const Config& c) {
    constexpr int most_registers = 216, most_shared = 99 * 1024;  // the least that an architecture has
    int rows = is_over_keys(kind) ? c.block_kv : c.block_q, columns = is_over_keys(kind) ? c.block_q : c.block_kv;
    if (rows % (16 * c.workers) || columns % 16 || columns > 128 || kernel::backward_query_block % c.block_q) return false;
    kernel::Sm80BackwardTile tile{rows, columns, (int)p.head_dim, (int)p.head_dim_v, (int)size_of(p.dtype), c.stages, c.workers, is_over_keys(kind), gives_scored(kind), gives_carried(kind), p.softcap, gives_bias(kind)};
    return sm80_backward_register_estimate(tile) <= most_registers && sm80_backward_shared(tile).bytes <= most_shared;
}

// The widest tile of columns whose sums find registers, and as many rows as fit beside it; false if none does.
bool find_sm80_tile(const Problem& p, KernelKind kind, Config& config) {
    for (int columns : {64, 32, 16})
        for (auto [rows, workers, stages] : {std::array{64, 4, 2}, {64, 4, 1}, {32, 2, 1}, {16, 1, 1}}) {
            Config found;
            found.stages = stages, found.workers = workers, found.section_kb = 16 * 1024;
            found.block_q = is_over_keys(kind) ? columns : rows, found.block_kv = is_over_keys(kind) ? rows : columns;
            if (!fits_sm80(p, kind, found)) continue;
            config = found;
            return true;
        }
    return false;
}

Config changed_over(Config config) {
    std::swap(config.block_q, config.block_kv);
    return config;
}

// By mma.sync or in float: two passes, or three; each takes the config if it finds room, else a tile of its own that does. Where none does
// generate() says why.
void add_sm80_passes(const Problem& problem, Config config, std::vector<BackwardLaunch>& plan) {
    config.dq = config.persistent = 0, config.blocks = 1;
    auto finds_room = [&](KernelKind kind, Config& wanted) { return fits_sm80(problem, kind, wanted) || find_sm80_tile(problem, kind, wanted); };
    auto add = [&](KernelKind kind, Config wanted) {
        (void)finds_room(kind, wanted);
        plan.push_back({kind, wanted});
    };
    if (Config together = config; finds_room(attention_backward_keys, together)) plan.push_back({attention_backward_keys, together});
    else add(attention_backward_keys_alone, config), add(attention_backward_values_alone, config);
    add(attention_backward_queries, changed_over(config));
    if (problem.bias) add(attention_backward_bias, changed_over(config));
}

// On RDNA, where registers are few.
bool splits_keys_on_amd(const Problem& p, Family family) { return family != Family::cdna && p.head_dim + p.head_dim_v > 256; }

// Without spills up to head dims of 128, and on all but RDNA3 up to 256.
Config amd_tile(const Problem& p, Family family, KernelKind kind) {
    bool cdna = family == Family::cdna, over_keys = is_over_keys(kind);
    int64_t most = std::max(p.head_dim, p.head_dim_v), sums = (gives_scored(kind) ? p.head_dim : 0) + (gives_carried(kind) ? p.head_dim_v : 0);
    int rows = 64, columns = cdna ? 64 : 32;
    Config config;
    config.workers = 4, config.stages = most <= 128 ? 2 : 1, config.section_kb = 4 * 1024;
    if (cdna) {
        if (most > 128 || sums > 128) columns = 32;
    } else if (most > 128 || (over_keys && sums > 128)) {
        columns = 16, config.stages = most > 128 || over_keys ? 1 : 2;
        if (gives_scored(kind) && p.head_dim + p.head_dim_v > 320) rows = 32, config.workers = 2;  // local memory holds the rows
    }
    config.block_q = over_keys ? columns : rows, config.block_kv = over_keys ? rows : columns;
    return config;
}

// Two passes, or three. The pass over queries has a tile of its own where none was chosen.
void add_amd_passes(const Problem& problem, const Config& config, const Arch& arch, std::vector<BackwardLaunch>& plan) {
    bool splits = splits_keys_on_amd(problem, arch.family), is_default = config == amd_tile(problem, arch.family, splits ? attention_backward_keys_alone : attention_backward_keys);
    if (splits) plan.push_back({attention_backward_keys_alone, config}), plan.push_back({attention_backward_values_alone, config});
    else plan.push_back({attention_backward_keys, config});
    auto own_tile = [&](KernelKind kind) { plan.push_back({kind, is_default ? amd_tile(problem, arch.family, kind) : changed_over(config)}); };
    own_tile(attention_backward_queries);
    if (problem.bias) own_tile(attention_backward_bias);
}

// Each gradient by a pass of its own, of which that of dK may give dQ too.
void add_sm90_wide_passes(const Config& config, std::vector<BackwardLaunch>& plan) {
    plan.push_back({attention_backward_keys_alone, config}), plan.push_back({attention_backward_values_alone, config});
    if (config.dq == 0) plan.push_back({attention_backward_queries, changed_over(config)});
    else plan.push_back({attention_backward_epilogue, config});
}

// Gradients that are repeatable: dQ is summed in a fixed order beside dK and dV where no register spills, which takes two thirds of the time of a pass of its own.
Config sm90_repeatable_config(const KernelSpec& apart, const Arch& arch) {
    const Problem& p = apart.problem;
    const bool narrow = p.head_dim <= 64, plain = !p.alibi && !p.softcap, windowed = p.window_left >= 0;
    if (narrow ? windowed && !plain : p.alibi) return apart.config;
    KernelSpec spec = apart;
    spec.config.dq = 2, spec.config.section_kb = 16 * 1024;
    spec.config.persistent = !narrow || windowed;
    if (narrow && plain && p.head_dim_v <= 64) spec.config.block_q = 128;
    return nvidia_text(spec, arch).ok() ? spec.config : apart.config;
}

// Two warpgroups own 128 rows; the columns of heads that work at the same time share the L2 cache. dQ is summed in memory where its part finds
// registers beside dK (and dV). Beside dK alone it saves two products of eight, which pays for clearing and reading the sums where a query sees many keys. Where it sees
// some, or columns are few, work row by row is hidden beside the products (docs/performance-log.md).
Config sm90_backward_config(const Problem& problem, const Arch& arch, bool aligned) {
    bool wide = !takes_sm90_backward(problem, arch, aligned);
    KernelSpec spec{wide ? attention_backward_keys_alone : attention_backward_keys, problem, {}, aligned};
    Config& config = spec.config;
    config.block_kv = 128, config.workers = 2, config.stages = 2, config.section_kb = 32 * 1024;
    if (wide && !nvidia_text(spec, arch).ok()) config.block_q = 32;
    constexpr int64_t many_keys = 1024;
    const int64_t seen = keys_seen(problem, problem.seq_kv);
    if (wide && (problem.deterministic || seen < many_keys)) return config;
    if (problem.deterministic) return sm90_repeatable_config(spec, arch);
    Config apart = config;
    config.dq = 1;
    for (int block_q : {problem.head_dim <= 64 && !wide ? 128 : 64, 64}) {
        config.block_q = block_q;
        if (!nvidia_text(spec, arch).ok()) continue;
        const bool narrow = problem.head_dim <= 64;
        if (wide || problem.alibi || problem.softcap || (narrow ? problem.window_left >= 0 : seen < many_keys / 4)) return config;  // some would spill
        const Config without = config;
        config.persistent = 1, config.section_kb = (narrow ? 8 : 16) * 1024;
        return nvidia_text(spec, arch).ok() ? config : without;
    }
    return apart;
}

}  // namespace

std::vector<BackwardLaunch> backward_plan(const Problem& problem, const Config& given, const Arch& arch, bool aligned) {
    Config config = given;
    if (problem.packed) config.dq = config.persistent = 0;
    if (problem.seq_kv == 0 || (arch.backend == "nvidia" && !takes_copy_engine_backward(problem, arch, aligned))) config.persistent = 0;  // nobody walks over keys, or not so
    std::vector<BackwardLaunch> plan{{attention_backward_prologue, config}};
    if (arch.backend == "amd") {
        add_amd_passes(problem, config, arch, plan);
    } else if (arch.backend == "nvidia" && takes_sm90_wide_backward(problem, arch, aligned)) {
        add_sm90_wide_passes(config, plan);
    } else if (arch.backend == "nvidia" && !takes_sm90_backward(problem, arch, aligned)) {
        add_sm80_passes(problem, config, plan);
    } else {
        plan.push_back({attention_backward_keys, config});
        if (config.dq == 0) plan.push_back({attention_backward_queries, arch.family == Family::cpu ? config : changed_over(config)});
        else if (!config.persistent) plan.push_back({attention_backward_epilogue, config});
        if (problem.bias) plan.push_back({attention_backward_bias, plan.back().config}), plan.back().config.dq = 0;
    }
    if (problem.sink) plan.push_back({attention_backward_sink, config});
    return plan;
}

Config default_backward_config(const Problem& problem, const Arch& arch, bool aligned) {
    Config config;
    if (arch.backend == "amd") return amd_tile(problem, arch.family, splits_keys_on_amd(problem, arch.family) ? attention_backward_keys_alone : attention_backward_keys);
    // Sums are at least 64 columns wide: of few columns they would be most of the memory that a backward takes.
    if (arch.backend != "nvidia") return config.dq = problem.head_dim > 32 && !problem.packed ? 2 : 0, config;
    if (!takes_copy_engine_backward(problem, arch, aligned)) {
        if (!find_sm80_tile(problem, attention_backward_keys, config)) (void)find_sm80_tile(problem, attention_backward_keys_alone, config);
        return config;
    }
    return sm90_backward_config(problem, arch, aligned);
}

int64_t keys_seen(const Problem& p, int64_t seq_kv) {
    int64_t seen = p.causal() ? seq_kv / 2 : seq_kv;
    return p.window_left >= 0 && p.window_right >= 0 ? std::min(seen, p.window_left + p.window_right + 1) : seen;
}

BackwardWorkspace backward_workspace(const Problem& p, const Config& config) {
    BackwardWorkspace workspace;
    workspace.padded_queries = kernel::backward_padded(p.seq_q);
    int64_t queries = p.batch * p.heads_q * workspace.padded_queries;
    workspace.statistics_bytes = queries * static_cast<int64_t>(sizeof(float));
    if (config.dq) workspace.part_bytes = 4 * workspace.statistics_bytes;
    if (config.dq) workspace.query_sum_bytes = workspace.statistics_bytes * kernel::backward_sum_columns(static_cast<int>(p.head_dim));
    if (config.dq == 2) workspace.order_bytes = queries / kernel::backward_least_block_q * kernel::backward_most_turns * static_cast<int64_t>(sizeof(unsigned));
    if (config.persistent) workspace.count_bytes = kernel::backward_counts(p.batch * p.heads_kv) * static_cast<int64_t>(sizeof(unsigned));
    return workspace;
}

BackwardWorkspace packed_backward_workspace(const Problem& p, int64_t query_rows) {
    BackwardWorkspace workspace;
    if (query_rows == -1) {
        const std::vector<int32_t> lengths = query_lengths(p);
        query_rows = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    }
    workspace.padded_queries = kernel::backward_padded_packed(query_rows, p.batch);
    workspace.statistics_bytes = p.heads_q * workspace.padded_queries * static_cast<int64_t>(sizeof(float));
    return workspace;
}

void use_workspace(const BackwardWorkspace& workspace, void* address, kernel::BackwardParameters& parameters) {
    char* bytes = static_cast<char*>(address);
    parameters.padded_queries = static_cast<int>(workspace.padded_queries);
    parameters.log_sums = reinterpret_cast<float*>(bytes);
    parameters.deltas = reinterpret_cast<float*>(bytes + workspace.statistics_bytes);
    bytes += 2 * workspace.statistics_bytes;
    parameters.log_sum_parts = workspace.part_bytes ? bytes : nullptr;
    parameters.delta_parts = workspace.part_bytes ? bytes + workspace.part_bytes : nullptr;
    bytes += 2 * workspace.part_bytes;
    parameters.query_sums = workspace.query_sum_bytes ? reinterpret_cast<float*>(bytes) : nullptr;
    bytes += workspace.query_sum_bytes;
    parameters.turns = workspace.order_bytes ? reinterpret_cast<unsigned*>(bytes) : nullptr;
    parameters.counts = workspace.count_bytes ? reinterpret_cast<unsigned*>(bytes + workspace.order_bytes) : nullptr;
}

}  // namespace tilewright
