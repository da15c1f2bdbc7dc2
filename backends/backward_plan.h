// What a backward consists of: one config of its problem gives the kernels, each with a config of its own, and the workspace.
#pragma once
#include <cstdint>
#include <vector>

#include "backends/kernel_source.h"
#include "kernels/parameters.h"

namespace tilewright {

// The config of a backward problem. A tile owns block_kv keys and walks over block_q queries at a step; stages, workers, blocks and
// section_kb are those of this pass over keys, and `dq` says where the gradient of the queries comes from. The pass over queries, if there is
// one (dq 0), has tiles of block_q queries and block_kv keys on the CPU; on GPUs, where workers share the rows that a tile owns, queries and
// keys are changed over: a tile owns block_kv queries and walks over block_q keys.
struct BackwardLaunch {
    KernelKind kind;
    Config config;
};
// In the order of the launches, the first with the whole config. Whether the architecture can run them is generate()'s to say. `aligned` as in KernelSpec.
std::vector<BackwardLaunch> backward_plan(const Problem& problem, const Config& config, const Arch& arch, bool aligned);

// Keys that a query sees of `seq_kv`, about: on the average, as far as the problem's mask goes.
int64_t keys_seen(const Problem& problem, int64_t seq_kv);

// Not tuned: what a backward takes if nothing better is known.
Config default_backward_config(const Problem& problem, const Arch& arch, bool aligned);

// One after another in the workspace, which need not be initialized and is proportional to batch * heads_q * seq_q.
struct BackwardWorkspace {
    int64_t padded_queries = 0;      // of each batch and head
    int64_t statistics_bytes = 0;    // of log-sums, and as many of deltas
    int64_t part_bytes = 0;          // of log-sums in parts, and as many of deltas, where dq is not 0
    int64_t query_sum_bytes = 0;     // float sums of the gradient of the queries, where dq is not 0
    int64_t order_bytes = 0;         // where dq is 2: counters of who is next
    int64_t count_bytes = 0;         // of a persistent pass: counters of its work row by row
    int64_t bytes() const { return 2 * (statistics_bytes + part_bytes) + query_sum_bytes + order_bytes + count_bytes; }
};
BackwardWorkspace backward_workspace(const Problem& problem, const Config& config);
// Of `problem.batch` packed sequences with so many queries together; -1: as query_lengths() has them.
BackwardWorkspace packed_backward_workspace(const Problem& problem, int64_t query_rows);

// Sets the workspaces of a launch, and padded_queries. `address` must be 16-byte aligned.
void use_workspace(const BackwardWorkspace& workspace, void* address, kernel::BackwardParameters& parameters);

}  // namespace tilewright
