// Which kernels make a backward, and with which tiles: not tuned.
#include "backends/kernel_source.h"

namespace tilewright {
namespace {

struct Tiles {
    Config keys, queries;
};

// Warpgroups that own 64 rows each; the columns of heads that work at the same time share the L2 cache.
Tiles sm90_tiles() {
    Config config;
    config.workers = 2, config.stages = 2, config.section_kb = 32 * 1024;
    Tiles tiles{config, config};
    tiles.keys.block_kv = 128, tiles.queries.block_q = 128;
    return tiles;
}

}  // namespace

std::vector<BackwardLaunch> backward_plan(const Problem& problem, const Arch& arch, bool aligned) {
    (void)aligned;
    Tiles tiles = arch.family == Family::sm90 ? sm90_tiles() : Tiles{};
    std::vector<BackwardLaunch> plan{{KernelKind::attention_backward_prologue, tiles.queries},
                                     {KernelKind::attention_backward_keys, tiles.keys},
                                     {KernelKind::attention_backward_queries, tiles.queries}};
    if (problem.sink) plan.push_back({KernelKind::attention_backward_sink, tiles.queries});
    return plan;
}

}  // namespace tilewright
