// Bytes, operations and tile counts against hand-made answers and a slow count.
#include "model/traffic.h"

#include <gtest/gtest.h>

#include <set>

namespace tilewright {
namespace {

Problem problem(const char* text) {
    Result<Problem> result = parse_problem(text);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return *result;
}

TEST(Traffic, ScoreMatrixOfTheClassicExampleIs32MiB) {
    EXPECT_EQ(score_matrix_bytes(problem("forward:b1,hq1,hkv1,sq4096,skv4096,d64,bf16")), 33554432);
}

TEST(Traffic, CompulsoryBytesAreEveryTensorOnce) {
    // Q and out 2 * 4096 * 64, K and V the same, all of 2 bytes, and 4 bytes of lse a row.
    EXPECT_EQ(compulsory_bytes(problem("forward:sq4096,d64,bf16")), 4 * 4096 * 64 * 2 + 4096 * 4);
    // K and V once per KV head; value and out have their own width.
    EXPECT_EQ(compulsory_bytes(problem("forward:b2,hq8,hkv2,sq16,skv32,d64,dv32,fp32")), 4 * (2 * 8 * 16 * 96 + 2 * 2 * 32 * 96) + 2 * 8 * 16 * 4);
}

TEST(Traffic, ABackwardReadsABiasAndWritesItsGradient) {
    double without = compulsory_bytes(problem("backward:b2,hq4,sq16,skv32,d64,bf16"));
    EXPECT_EQ(compulsory_bytes(problem("backward:b2,hq4,sq16,skv32,d64,bf16,bias")), without + 2 * 2 * (2 * 4 * 16 * 32));
}

TEST(Traffic, StandardAttentionMovesTheScoresFourTimes) {
    Problem p = problem("forward:sq4096,d64,bf16");
    EXPECT_EQ(standard_work(p).bytes, compulsory_bytes(p) + 4 * 33554432.0);
    EXPECT_EQ(standard_work(p).matrix_flops, 4.0 * 4096 * 4096 * 64);
}

TEST(Traffic, TiledAttentionReadsKeysAndValuesOncePerQueryTile) {
    Problem p = problem("forward:sq4096,d64,bf16");
    Config config;
    config.block_q = 64, config.block_kv = 128;
    double query_bytes = 4096 * (128 * 2 + 4), kv_bytes = 4096 * 128 * 2;
    EXPECT_EQ(tiled_work(p, config).bytes, query_bytes + 64 * kv_bytes);
    EXPECT_EQ(tiled_work(p, config).matrix_flops, 4.0 * 4096 * 4096 * 64);
    config.block_q = 128;
    EXPECT_EQ(tiled_work(p, config).bytes, query_bytes + 32 * kv_bytes);
}

TEST(Traffic, CausalMaskLeavesTheLowerTriangleOfTiles) {
    Config config;
    config.block_q = config.block_kv = 64;
    EXPECT_EQ(count_tiles(problem("forward:sq4096,d64,bf16,causal"), config).kv_tiles, 64 * 65 / 2);
    EXPECT_EQ(count_tiles(problem("forward:sq4096,d64,bf16"), config).kv_tiles, 64 * 64);
}

TEST(Traffic, HeadsOfAGroupThatArePackedShareTheirKeys) {
    Problem p = problem("forward:b2,hq32,hkv8,sq16,skv1024,d128,bf16");
    Config config;
    config.block_q = 64, config.block_kv = 64;
    EXPECT_EQ(count_tiles(p, config).heads, 64);
    config.packs_heads = 1;
    TileCounts counts = count_tiles(p, config);
    EXPECT_EQ(counts.heads, 16);
    EXPECT_EQ(counts.query_tiles, 1);
    EXPECT_EQ(counts.kv_tiles, 16);
}

TEST(Traffic, TilesSeenAgreeWithASlowCountUnderEveryMask) {
    for (const char* text : {"forward:sq100,d64,bf16", "forward:sq100,skv257,d64,bf16,causal", "forward:sq257,skv100,d64,bf16,causal", "forward:sq100,skv257,d64,bf16,causal,topleft",
                             "forward:sq300,d64,bf16,window20:0", "forward:sq300,skv200,d64,bf16,window20:33", "forward:sq1,skv500,d64,bf16,window64:0",
                             "forward:hq6,hkv2,sq50,skv70,d64,bf16,causal", "forward:sq0,skv5,d64,bf16", "forward:sq5,skv0,d64,bf16"}) {
        Problem p = problem(text);
        for (int packs = 0; packs <= (p.heads_q > p.heads_kv); ++packs) {
            Config config;
            config.block_q = 32, config.block_kv = 16, config.packs_heads = packs;
            int64_t group = packs ? p.heads_q / p.heads_kv : 1, diagonal = p.alignment == Alignment::bottom_right ? p.seq_kv - p.seq_q : 0;
            std::set<std::pair<int64_t, int64_t>> seen;  // (query tile, KV tile) with a visible pair
            for (int64_t row = 0; row < p.seq_q * group; ++row)
                for (int64_t key = 0; key < p.seq_kv; ++key) {
                    int64_t distance = key - (row / group + diagonal);
                    if ((p.window_left < 0 || -distance <= p.window_left) && (p.window_right < 0 || distance <= p.window_right))
                        seen.insert({row / config.block_q, key / config.block_kv});
                }
            EXPECT_EQ(count_tiles(p, config).kv_tiles, double(seen.size())) << text << " packs_heads " << packs;
        }
    }
}

TEST(Traffic, PackedSequencesCountOneByOne) {
    const Problem drawn = problem("forward:b5,hq4,hkv2,sq=loguniform(3,200),skv=loguniform(10,400),d64,bf16,causal,packed,seed4");
    Config config;
    config.block_q = 32, config.block_kv = 16;
    const std::vector<int32_t> queries = query_lengths(drawn), keys = kv_lengths(drawn);
    double query_tiles = 0, kv_tiles = 0, bytes = 0, scores = 0;
    Work work;
    for (size_t i = 0; i < queries.size(); ++i) {
        const Problem one = problem(("forward:hq4,hkv2,d64,bf16,causal,sq" + std::to_string(queries[i]) + ",skv" + std::to_string(keys[i])).c_str());
        query_tiles += double(count_tiles(one, config).query_tiles), kv_tiles += count_tiles(one, config).kv_tiles;
        bytes += compulsory_bytes(one), scores += score_matrix_bytes(one), work.bytes += tiled_work(one, config).bytes;
    }
    const TileCounts counts = count_tiles(drawn, config);
    EXPECT_EQ(counts.heads, 4);
    EXPECT_EQ(double(counts.query_tiles), query_tiles);
    EXPECT_EQ(counts.kv_tiles, kv_tiles);
    EXPECT_DOUBLE_EQ(compulsory_bytes(drawn), bytes);
    EXPECT_DOUBLE_EQ(score_matrix_bytes(drawn), scores);
    EXPECT_DOUBLE_EQ(tiled_work(drawn, config).bytes, work.bytes);
    // Sequences of one length are as many batches.
    EXPECT_DOUBLE_EQ(compulsory_bytes(problem("forward:b3,hq4,sq50,d64,packed")), compulsory_bytes(problem("forward:b3,hq4,sq50,d64")));
    EXPECT_DOUBLE_EQ(tiled_work(problem("forward:b3,hq4,sq50,d64,packed"), config).bytes, tiled_work(problem("forward:b3,hq4,sq50,d64"), config).bytes);
}

TEST(Traffic, SamplingOfManyQueryTilesIsClose) {
    Config config;
    config.block_q = 16, config.block_kv = 64;
    double all = 4194304.0 / 16 * 4194304 / 64 / 2;
    EXPECT_NEAR(count_tiles(problem("forward:sq4194304,d64,bf16,causal"), config).kv_tiles / all, 1, 1e-3);
}

}  // namespace
}  // namespace tilewright
