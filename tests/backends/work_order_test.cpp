// How the host deals out a launch's work.
#include <gtest/gtest.h>

#include "backends/launch.h"

namespace tilewright {
namespace {

struct Prologue {
    int prepared, tiles;  // KV heads that the prologue prepares, and its blocks of queries
};

Prologue prologue_of(const std::string& text) {
    const Problem problem = *parse_problem(text);
    Config config;
    config.block_q = 64, config.block_kv = 128, config.workers = 2, config.stages = 2, config.dq = 1, config.persistent = 1, config.section_kb = 16 * 1024;
    kernel::BackwardParameters parameters{};
    kernel::ForwardParameters& p = parameters.forward;
    p.batch = (int)problem.batch, p.heads_q = (int)problem.heads_q, p.heads_kv = (int)problem.heads_kv, p.seq_q = (int)problem.seq_q, p.seq_kv = (int)problem.seq_kv;
    parameters.padded_queries = kernel::backward_padded(p.seq_q);
    fill_work_order({KernelKind::attention_backward_prologue, problem, config, true}, parameters, 1);
    return {parameters.prepared_heads, p.tiles};
}

TEST(BackwardWorkOrder, APersistentPassPreparesWhatItHasTheTimeFor) {
    // Of 1024 keys that a query sees it has the time for all: the prologue does the two sections of heads that come first, of four each.
    EXPECT_EQ(prologue_of("backward:b4,hq16,sq4096,d128,bf16").prepared, 8);
    EXPECT_EQ(prologue_of("backward:b4,hq16,sq4096,d128,bf16,causal").prepared, 8);
    // 512 keys: half of 256 heads; 256 keys: three quarters of 512.
    EXPECT_EQ(prologue_of("backward:b16,hq16,sq1024,d128,bf16,causal").prepared, 128);
    EXPECT_EQ(prologue_of("backward:b32,hq16,sq512,d128,bf16,causal").prepared, 384);
    EXPECT_EQ(prologue_of("backward:b32,hq16,sq512,d128,bf16").prepared, 256);
    // A window shows few keys of many.
    EXPECT_EQ(prologue_of("backward:b4,hq16,sq4096,d128,bf16,window255:0").prepared, 48);
    // All heads where there are few, and of grouped heads those of the queries.
    EXPECT_EQ(prologue_of("backward:b1,hq2,sq512,d128,bf16").prepared, 2);
    const Prologue grouped = prologue_of("backward:b16,hq16,hkv4,sq1024,d128,bf16,causal");
    EXPECT_EQ(grouped.prepared, 32);
    EXPECT_EQ(grouped.tiles, 32 * 4 * 1024 / kernel::backward_query_block);
}

}  // namespace
}  // namespace tilewright
