// Which kernels make a backward, and with which tiles: not tuned.
#include <array>

#include "backends/family_text.h"
#include "kernels/resources_nvidia.h"

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

// The widest tile of columns whose sums find registers, and as many rows as fit beside it; false if none does. Estimates up to 216
// were without spills in every head dim and variant (tests/kernels/nvidia_backward_text_test.cpp).
bool find_sm80_tile(const Problem& p, KernelKind kind, Config& config) {
    constexpr int most_registers = 216, most_shared = 99 * 1024;  // the least that an architecture has
    for (int columns : {64, 32, 16})
        for (auto [rows, workers, stages] : {std::array{64, 4, 2}, {64, 4, 1}, {32, 2, 1}, {16, 1, 1}}) {
            kernel::Sm80BackwardTile tile{rows, columns, (int)p.head_dim, (int)p.head_dim_v, (int)size_of(p.dtype), stages, workers, is_over_keys(kind), gives_scored(kind), gives_carried(kind), p.softcap};
            if (sm80_backward_register_estimate(tile) > most_registers || sm80_backward_shared(tile).bytes > most_shared) continue;
            config.stages = stages, config.workers = workers, config.section_kb = 16 * 1024;
            config.block_q = tile.over_keys ? columns : rows, config.block_kv = tile.over_keys ? rows : columns;
            return true;
        }
    return false;
}

}  // namespace

std::vector<BackwardLaunch> backward_plan(const Problem& problem, const Arch& arch, bool aligned) {
    using enum KernelKind;
    Tiles tiles = takes_sm90_backward(problem, arch, aligned) ? sm90_tiles() : Tiles{};
    std::vector<BackwardLaunch> plan{{attention_backward_prologue, tiles.queries}};
    auto add = [&](KernelKind kind, const Config& config) { plan.push_back({kind, config}); };
    if (arch.backend == "nvidia" && !takes_sm90_backward(problem, arch, aligned)) {
        Config config;
        if (find_sm80_tile(problem, attention_backward_keys, config)) {
            add(attention_backward_keys, config);
        } else {
            for (KernelKind kind : {attention_backward_keys_alone, attention_backward_values_alone})
                if (find_sm80_tile(problem, kind, config)) add(kind, config);
        }
        if (find_sm80_tile(problem, attention_backward_queries, config)) add(attention_backward_queries, config);
    } else {
        add(attention_backward_keys, tiles.keys), add(attention_backward_queries, tiles.queries);
    }
    if (problem.sink) add(attention_backward_sink, tiles.queries);
    return plan;
}

}  // namespace tilewright
