// Chooses a decode kernel's tile.
#include "model/decode_config.h"

#include <algorithm>

namespace tilewright {

Config decode_config(const Problem& problem) {
    Config config;
    // All rows that share a key, up to so many that the first level cache still holds their scores and outputs beside a tile.
    constexpr int64_t most_rows = 16;
    int64_t rows = std::max<int64_t>(1, problem.seq_q * (problem.heads_q / problem.heads_kv));
    config.block_q = static_cast<int>(rows <= 2 ? rows : std::min(most_rows, (rows + 3) / 4 * 4));
    config.block_kv = 64;
    config.packs_heads = problem.heads_q > problem.heads_kv;
    return config;
}

}  // namespace tilewright
