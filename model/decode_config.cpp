// Chooses a decode kernel's tile.
#include "model/decode_config.h"

#include <algorithm>

#include "backends/decode_plan.h"
#include "kernels/resources_nvidia.h"

namespace tilewright {

namespace {

int64_t rows_of(const Problem& problem) { return std::max<int64_t>(1, problem.seq_q * (problem.heads_q / problem.heads_kv)); }

Config for_cpu(const Problem& problem) {
    Config config;
    // All rows that share a key, up to so many that the first level cache still holds their scores and outputs beside a tile.
    constexpr int64_t most_rows = 16;
    int64_t rows = rows_of(problem);
    config.block_q = static_cast<int>(rows <= 2 ? rows : std::min(most_rows, (rows + 3) / 4 * 4));
    config.block_kv = 64;
    config.packs_heads = problem.heads_q > problem.heads_kv;
    return config;
}

// A warp for every 16 rows. Two tiles in flight, small enough that a multiprocessor holds several blocks.
Config for_warps(const Problem& problem) {
    Config config;
    constexpr int64_t most_warps = 4;
    config.workers = static_cast<int>(std::min(most_warps, (rows_of(problem) + 15) / 16));
    config.block_q = 16 * config.workers;
    config.block_kv = problem.dtype == DType::fp32 || problem.head_dim > 128 ? 32 : 64;
    config.stages = 2;
    config.packs_heads = problem.heads_q > problem.heads_kv;
    return config;
}

// Four waves that share the keys in LDS, each with 16 rows, however few there are: they load together.
Config for_waves(const Problem& problem, const Arch& arch) {
    Config config;
    config.workers = 4, config.block_q = 64;
    config.block_kv = (arch.family == Family::cdna ? 64 : 32) / (problem.head_dim <= 128 ? 1 : 2);
    // As LDS has room for: the compiler would take more registers for one, which long rows of output need.
    if (arch.family == Family::cdna && problem.head_dim_v <= 256) config.blocks = 2;
    config.packs_heads = problem.heads_q > problem.heads_kv;
    return config;
}

// 16 rows by four warps that share the keys, or 64 by a warpgroup; the largest tiles that fit.
Config for_copy_engine(const Problem& problem, const Arch& arch) {
    Config config;
    bool wide = rows_of(problem) > 16;
    config.block_q = wide ? 64 : 16, config.workers = wide ? 1 : 4;
    config.packs_heads = problem.heads_q > problem.heads_kv;
    // Asking for more pays where a block has more to read than that hides.
    int64_t kv_bytes = 2 * problem.batch * problem.heads_kv * problem.seq_kv * (problem.head_dim + problem.head_dim_v);
    config.early_kb = kv_bytes / arch.units < (int64_t{1} << 20) ? 64 : 128;
    auto fits = [&] {
        kernel::NvidiaTile tile{(int)problem.head_dim, (int)problem.head_dim_v, 2, config.block_q, config.block_kv, config.stages, config.workers, config.blocks, false, false};
        return sm90_decode_shared_bytes(tile) <= arch.shared_bytes_per_block && sm90_decode_register_estimate(tile) <= sm90_decode_register_limit(tile);
    };
    bool rescores = problem.softcap || problem.bias || problem.alibi;  // which takes registers
    for (config.block_kv = wide ? (rescores ? 64 : 128) : problem.head_dim + problem.head_dim_v <= 128 ? 256 : 128; config.block_kv >= 64; config.block_kv /= 2)
        for (config.stages = wide ? 3 : 2; config.stages >= 2; --config.stages)
            if (fits()) return config;
    config.block_kv = 64, config.stages = 1;
    return config;
}

}  // namespace

Config decode_config(const Problem& problem, const Arch& arch, bool aligned) {
    if (arch.family == Family::cpu) return for_cpu(problem);
    if (arch.backend == "amd") return for_waves(problem, arch);
    KernelSpec spec;
    spec.kind = KernelKind::attention_decode, spec.problem = problem;
    spec.aligned = aligned;
    return decodes_by_copy_engine(spec, arch) ? for_copy_engine(problem, arch) : for_warps(problem);
}

}  // namespace tilewright
