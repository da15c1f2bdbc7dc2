// Chooses a decode kernel's tile.
#include "model/decode_config.h"

#include <algorithm>

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

}  // namespace

Config decode_config(const Problem& problem, const Arch& arch) {
    return arch.family == Family::cpu ? for_cpu(problem) : for_warps(problem);
}

}  // namespace tilewright
