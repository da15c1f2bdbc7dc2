// Threads, shared memory and registers of the NVIDIA kernels, by arithmetic: the host knows them before compiling, and the
// kernels assert that they agree.
#pragma once
#include "arch/sm90_arguments.h"
#include "tile/tile.h"

namespace tilewright::kernel {

// What they follow from: of the problem, the head dims of key and value; of the config, what its fields of these names say.
struct NvidiaTile {
    int head_dim, head_dim_v, element_bytes;
    int block_q, block_kv, stages, workers, blocks;
    bool overlapped, persistent;
};

constexpr int nvidia_registers_per_unit = 65536;

// Kernels of sm80.h: a worker is a warp, and holds strips of 16 rows.
// A row in shared memory, in 16-byte pieces. Eight rows' pieces at the same place must lie in different banks: where the
// row is a multiple of 128 bytes by a swizzle, else by an odd number of pieces.
constexpr int sm80_row_pieces(int columns, int element_bytes) { return round_up(columns, 16) * element_bytes / 16; }
constexpr int sm80_row_pitch(int pieces) { return pieces % 8 == 0 ? pieces : pieces | 1; }
constexpr int sm80_tile_bytes(int rows, int columns, int element_bytes) {
    return rows * sm80_row_pitch(sm80_row_pieces(columns, element_bytes)) * 16;
}
constexpr int sm80_threads(const NvidiaTile& t) { return 32 * t.workers; }
constexpr int sm80_shared_bytes(const NvidiaTile& t) {
    return sm80_tile_bytes(t.block_q, t.head_dim, t.element_bytes) +
           t.stages * (sm80_tile_bytes(t.block_kv, t.head_dim, t.element_bytes) + sm80_tile_bytes(t.block_kv, t.head_dim_v, t.element_bytes)) + 16;
}
constexpr int sm80_register_limit(const NvidiaTile& t) { return min_of(255, nvidia_registers_per_unit / (sm80_threads(t) * t.blocks) / 8 * 8); }
// The accumulators, the rounded scores, and what addresses and maxima take: of kernels compiled by NVRTC 13.0 mostly 72 beside these, of which
// the assembler does without 20 where it must.
constexpr int sm80_register_estimate(const NvidiaTile& t, int beside = 0) {
    int strips = t.block_q / t.workers / 16, columns = round_up(t.head_dim_v, 16);
    int pressed = strips * (columns / 2 + t.block_kv / 2 + (t.element_bytes == 2 ? t.block_kv / 4 : t.block_kv / 2)) + 52 + beside;
    return max_of(pressed, min_of(pressed + 20, sm80_register_limit(t)));
}

// What the schedule takes beside, of 16-bit kernels: overlapped, a second tile of scores and more addresses the longer the head; else a few registers
// with more than 128 columns, and persistent with the smallest tiles (of 18 kernels of d128 128x16 six spilled 20 bytes) or three blocks (of six of d128 64x64 three, 12 to 20). From 733 kernels compiled by NVRTC 13.0: of 345 within the limit with these one spills more than four.
constexpr int sm80_schedule_registers(const NvidiaTile& t) {
    if (t.element_bytes != 2) return 0;
    if (t.overlapped) return t.block_q / t.workers / 16 * t.block_kv / 2 + t.head_dim / 4 - 12;
    if (t.persistent && t.blocks > 2) return t.head_dim > 64 ? 8 : 4;
    return t.head_dim_v > 128 || (t.persistent && t.block_kv == 16) ? 4 : 0;
}

// What variants of the scores take beside: addresses and values of a bias that the compiler has under way. Of kernels compiled by NVRTC 13.0; a
// softcap or ALiBi alone, and sinks, take nothing.
constexpr int sm80_variant_registers(const NvidiaTile& t, bool softcap, bool bias, bool alibi) {
    if (!bias && !(softcap && alibi)) return 0;
    int keys = t.block_q / t.workers / 16 * t.block_kv;
    return keys / 2 + (!softcap && keys > 32 ? keys / 2 : 0) + (bias && alibi ? (t.head_dim > 128 ? 40 : 16) : 0);
}

// The backward's passes by the same products: what is scored [0] and carried [1] of the rows, and in a ring of the columns; over keys
// also the statistics of columns, log-sums [0] and deltas [1]. Offsets and sizes in bytes.
struct Sm80BackwardTile {
    int rows, columns, scored_depth, carried_depth, element_bytes, stages, workers;
    bool over_keys, gives_scored, gives_carried, softcap, gives_bias;
    constexpr bool differentiates() const { return gives_scored || gives_bias; }
};
struct Sm80BackwardShared {
    int row[2], column[2], statistics[2], stage_bytes, bytes;  // `column` and `statistics` are those of the first stage
};
constexpr Sm80BackwardShared sm80_backward_shared(const Sm80BackwardTile& t) {
    Sm80BackwardShared s{};
    s.row[1] = sm80_tile_bytes(t.rows, t.scored_depth, t.element_bytes);
    s.column[0] = s.row[1] + (t.differentiates() ? sm80_tile_bytes(t.rows, t.carried_depth, t.element_bytes) : 0);
    s.column[1] = s.column[0] + sm80_tile_bytes(t.columns, t.scored_depth, t.element_bytes);
    s.statistics[0] = s.column[1] + sm80_tile_bytes(t.columns, t.carried_depth, t.element_bytes);
    s.statistics[1] = s.statistics[0] + (t.over_keys ? 4 * t.columns : 0);
    s.stage_bytes = s.statistics[1] + (t.over_keys ? 4 * t.columns : 0) - s.column[0];
    s.bytes = s.column[0] + t.stages * s.stage_bytes;
    if (t.gives_bias) s.bytes = max_of(s.bytes, 4 * t.rows * t.columns);  // the tile of the gradient, in the end
    return s;
}
// The gradients, S and dP, what is rounded of them, and what addresses and statistics take.
constexpr int sm80_backward_register_estimate(const Sm80BackwardTile& t) {
    int gradients = (t.gives_scored ? round_up(t.scored_depth, 16) : 0) + (t.gives_carried ? round_up(t.carried_depth, 16) : 0) + (t.gives_bias ? t.columns : 0);
    int scores = t.columns * (t.differentiates() ? 2 : 1) + (t.softcap ? t.columns : 0);
    return t.rows / t.workers / 16 * (gradients + scores) / 2 + 60;
}

// Kernels of sm90.h: a worker is a warpgroup, and holds 64 rows; one more warpgroup loads.
constexpr int sm90_worker_rows = 64;
// Under a mask a worker often sees the first half alone of its last KV tile, where tiles have more keys than it has rows: that half is computed alone.
constexpr bool sm90_halves(int block_kv, bool masked) { return masked && block_kv > sm90_worker_rows && block_kv % 32 == 0; }
constexpr int sm90_panels(int columns) { return (columns + panel_columns - 1) / panel_columns; }
constexpr int sm90_tile_bytes(int rows, int columns) { return rows * sm90_panels(columns) * panel_columns * 2; }
// Places of 2 tiles that wait, and of the tile that each consuming warp stored last; 3 barriers for each of 2 tiles of queries and 6
// for each stage, a number for each stage, a mark.
constexpr int sm90_barrier_bytes = 1024;
constexpr int sm90_most_stages = 8;
static_assert(16 * (2 + 3 * 4) + 8 * (2 * 3 + 6 * sm90_most_stages + sm90_most_stages + 1) <= sm90_barrier_bytes);
constexpr int sm90_alignment = 1024;  // of what the copy engine swizzles: room to find it. The backward, which needs all the room there is, leaves it to its entry point (nvidia_text.cpp)
constexpr int sm90_threads(const NvidiaTile& t) { return 128 * (t.workers + 1); }
constexpr int sm90_shared_bytes(const NvidiaTile& t, int query_stages) {
    return query_stages * sm90_tile_bytes(t.block_q, t.head_dim) +
           t.stages * (sm90_tile_bytes(t.block_kv, t.head_dim) + sm90_tile_bytes(t.block_kv, t.head_dim_v)) + sm90_barrier_bytes + sm90_alignment;
}
// A second tile of queries waits in shared memory where there is a second tile, and room for it beside all else.
constexpr int sm90_shared_per_unit = 228 * 1024, sm90_shared_reserved = 1024;  // of a multiprocessor; of each of its blocks
constexpr int sm90_query_stages(const NvidiaTile& t) {
    return t.persistent && t.blocks * (sm90_shared_bytes(t, 2) + sm90_shared_reserved) <= sm90_shared_per_unit ? 2 : 1;
}
constexpr int sm90_shared_bytes(const NvidiaTile& t) { return sm90_shared_bytes(t, sm90_query_stages(t)); }
// The backward's passes: what is scored [0] and carried [1] of the rows, and in a ring of the columns; the statistics of columns over
// keys, of rows over queries. Where the pass over keys gives dQ: statistics in 16 bytes and what they are multiplied by, dS in two buffers, and one tile of its sums. Barriers: 2 full and 2 free for the
// rows, 4 for each stage, 4 for dS, 2 for the sums of each warpgroup; the tile's index; a mark. Where it works row by row, a place for each warp of the loading warpgroup that
// does so, a barrier for each of these and of the consumers, and one for the tile. Then a count of tiles for each warp of the consumers. Offsets and sizes in bytes.
constexpr int nvidia_backward_rows_threads = 256;
constexpr int sm90_factors_bytes = 128;       // what statistics are multiplied by (arch/sm90_statistics.h)
constexpr int sm90_warps_by_rows = 2;         // of the loading warpgroup, where the pass works row by row too
struct Sm90BackwardShared {
    int row_bytes[2], column_bytes[2], changes, changes_bytes, sums, statistics, statistics_bytes, factors, by_rows, by_rows_bytes, barriers, tiles, bytes;
};
constexpr Sm90BackwardShared sm90_backward_shared(int rows, int columns, int scored_depth, int carried_depth, int stages, bool over_keys, bool gives_queries, bool works_by_rows) {
    Sm90BackwardShared s{};
    s.row_bytes[0] = sm90_tile_bytes(rows, scored_depth), s.row_bytes[1] = sm90_tile_bytes(rows, carried_depth);
    s.column_bytes[0] = sm90_tile_bytes(columns, scored_depth), s.column_bytes[1] = sm90_tile_bytes(columns, carried_depth);
    s.changes = s.row_bytes[0] + s.row_bytes[1] + stages * (s.column_bytes[0] + s.column_bytes[1]);
    s.changes_bytes = gives_queries ? sm90_tile_bytes(columns, rows) : 0;
    s.statistics = s.changes + 2 * s.changes_bytes;
    s.statistics_bytes = (gives_queries ? 16 : 4) * (over_keys ? columns : rows);
    s.factors = s.statistics + 2 * (over_keys ? stages : 1) * s.statistics_bytes;
    s.sums = s.factors + (gives_queries ? sm90_factors_bytes : 0);
    s.by_rows = s.sums + (gives_queries ? columns * backward_sum_columns(scored_depth) * 4 : 0);
    int barriers = 8 * (11 + 4 * stages + 2 * (rows / sm90_worker_rows) + (works_by_rows ? sm90_warps_by_rows + rows / 16 : 0)), counts = 8 * rows / 16;
    if (works_by_rows)  // the most of 16, 12, 8 and 4 KiB that there is room for
        for (s.by_rows_bytes = 16 * 1024; s.by_rows_bytes > 4096 && s.by_rows + sm90_warps_by_rows * s.by_rows_bytes + barriers + counts > sm90_shared_per_unit - sm90_shared_reserved;) s.by_rows_bytes -= 4096;
    s.barriers = s.by_rows + sm90_warps_by_rows * s.by_rows_bytes;
    s.tiles = s.barriers + barriers;
    s.bytes = s.tiles + counts;
    return s;
}
// The same of wide heads, one gradient a pass (sm90_backward_wide.h): what is carried of the rows only where there is a dP; buffers of columns, of
// which those of what is carried are fewer where they serve dP alone; statistics of every buffer, or both of the rows. dS lies in a buffer, and
// half a tile of dQ.
struct Sm90WideTile {
    int rows, columns, scored_depth, carried_depth, stages;
    bool over_keys, gives_scored, gives_carried, gives_queries, takes_off;
    constexpr int carried_stages() const { return gives_carried ? stages : 1; }
    constexpr int buffers() const { return stages + carried_stages(); }
};
struct Sm90WideShared {
    int row_bytes[2], buffers, buffer_bytes, log_sums, log_sum_bytes, deltas, delta_bytes, factors, barriers, bytes;
};
constexpr Sm90WideShared sm90_wide_shared(const Sm90WideTile& t) {
    Sm90WideShared s{};
    s.row_bytes[0] = sm90_tile_bytes(t.rows, t.scored_depth), s.row_bytes[1] = t.gives_scored ? sm90_tile_bytes(t.rows, t.carried_depth) : 0;
    s.log_sums = s.row_bytes[0] + s.row_bytes[1];
    s.buffer_bytes = sm90_tile_bytes(t.columns, max_of(max_of(t.scored_depth, t.carried_depth), t.gives_queries ? t.rows : 0));
    if (t.gives_queries) s.buffer_bytes = max_of(s.buffer_bytes, 2 * t.columns * backward_sum_columns(t.scored_depth));
    s.delta_bytes = 4 * (t.over_keys ? t.columns : t.rows), s.log_sum_bytes = (t.takes_off ? 4 : 1) * s.delta_bytes;
    s.deltas = s.log_sums + (t.over_keys ? t.stages : 1) * s.log_sum_bytes;
    s.factors = s.deltas + (t.over_keys ? t.carried_stages() : 1) * s.delta_bytes;
    s.barriers = s.factors + (t.takes_off ? sm90_factors_bytes : 0);
    s.buffers = round_up(s.barriers + 8 * (9 + 2 * t.buffers() + t.stages), sm90_alignment);
    s.bytes = s.buffers + t.buffers() * s.buffer_bytes;
    return s;
}
// What the block is launched with, and how the loading warpgroup's share is dealt out. All together may not exceed what
// was launched, or they wait for ever, although the multiprocessor has the registers.
constexpr int sm90_registers_launched(int workers, int blocks) { return min_of(255, nvidia_registers_per_unit / (128 * (workers + 1) * blocks) / 8 * 8); }
constexpr int sm90_registers_loading(int workers) { return workers < 3 ? 40 : 32; }
constexpr bool sm90_moves_registers(int workers, int blocks) { return workers > 1 || blocks > 1; }
constexpr int sm90_register_limit(int workers, int blocks, int loading) {
    int launched = sm90_registers_launched(workers, blocks);
    return sm90_moves_registers(workers, blocks) ? min_of(240, (launched * (workers + 1) - loading) / workers / 8 * 8) : launched;
}
constexpr int sm90_register_limit(int workers, int blocks) { return sm90_register_limit(workers, blocks, sm90_registers_loading(workers)); }
constexpr int sm90_backward_registers_loading = 24;  // one thread deals and copies, and looks at nothing
constexpr int sm90_backward_registers_by_rows = 40;  // the same, where two warps work row by row
// The assembler wants all operands of one instruction in the registers that the block was launched with.
constexpr int sm90_operand_registers(const NvidiaTile& t) { return max_of(t.block_kv, round_up(t.head_dim_v, 8)) / 2 + 26; }
// Output, scores, rounded scores where both live at once, and what addresses and maxima take.
constexpr int sm90_register_estimate(const NvidiaTile& t) {
    return round_up(t.head_dim_v, 8) / 2 + t.block_kv / 2 + (t.overlapped ? t.block_kv / 4 : 0) + 32;
}

// What half tiles take beside where workers take no turns: of kernels compiled by NVRTC 13.0, those without a register to spare spilled or had their products serialised.
// With turns: of 16 kernels of d64 192x192 six; of d256 128x128 all, with turns or without; of 16 of d128 192x128 one, of one stage that is not persistent.
constexpr int sm90_half_registers(const NvidiaTile& t, bool masked, bool turns) {
    if (!sm90_halves(t.block_kv, masked) || t.overlapped) return 0;
    if (t.head_dim_v > 128) return 12;
    return turns && t.block_kv <= 128 && (t.workers < 3 || t.stages > 1 || t.persistent) ? 0 : 4;
}

// What takes more beside where workers overlap without turns: wide heads (of six kernels of d256 128x96 three spilled 36 bytes and more), and long rings without a mask: at d64
// 192x128 six registers, of which a persistent block needs three.
constexpr int sm90_ring_registers(const NvidiaTile& t, bool masked, bool turns) {
    if (!t.overlapped || turns) return 0;
    return t.head_dim_v > 128 ? 4 : !masked && !t.persistent && t.stages > 2 ? 6 : 0;
}

// What variants of the scores take beside, in 1/32 of a tile's keys: values and addresses that the compiler has under way. Of kernels compiled
// by NVRTC 13.0; sinks take nothing.
constexpr int sm90_variant_registers(const NvidiaTile& t, bool softcap, bool bias, bool alibi) {
    int beside_output = t.head_dim_v > 128 && (bias || (softcap && alibi)) ? 8 : 0;
    if (t.head_dim > 128 && bias && alibi) beside_output = 16;
    if (t.head_dim > 128 && softcap && !bias && !alibi) beside_output = t.head_dim_v > 128 ? 16 : 8;
    if (t.head_dim <= 64 && (t.overlapped || t.block_kv > 64) && bias && alibi) beside_output = 16;
    if (t.head_dim_v > 128 && t.overlapped && bias && !softcap) beside_output += t.block_kv / 3;
    int parts = (softcap ? 5 : 0) + (bias ? 9 : 0) + (softcap && alibi ? 4 : 0) + (bias && alibi ? 8 : 0) + (softcap && bias ? 7 : 0);
    return t.block_kv * parts / 32 + beside_output;
}

// Kernels of sm90_decode.h: up to 16 rows in a tile, by `workers` warps that see a share of its keys each, or 64 rows by a warpgroup; one
// more warp loads. In shared memory: the tiles, the query where a warpgroup reads it, the sums of workers, barriers.
constexpr bool sm90_decode_is_wide(const NvidiaTile& t) { return t.block_q == 64; }
constexpr int sm90_decode_warps(const NvidiaTile& t) { return sm90_decode_is_wide(t) ? 4 : t.workers; }
constexpr int sm90_decode_threads(const NvidiaTile& t) { return 32 * (sm90_decode_warps(t) + 1); }
constexpr int sm90_decode_sum_pitch(int head_dim_v) { return round_up(head_dim_v, 32) + 8; }  // floats; eight rows at the same place lie in different banks
constexpr int sm90_decode_sum_bytes(const NvidiaTile& t) { return sm90_decode_is_wide(t) || t.workers == 1 ? 0 : t.workers * 16 * 4 * (sm90_decode_sum_pitch(t.head_dim_v) + 2); }
constexpr int sm90_decode_tile_bytes(const NvidiaTile& t) {
    return (sm90_decode_is_wide(t) ? sm90_tile_bytes(64, t.head_dim) : 0) + t.stages * (sm90_tile_bytes(t.block_kv, t.head_dim) + sm90_tile_bytes(t.block_kv, t.head_dim_v));
}
constexpr int sm90_decode_shared_bytes(const NvidiaTile& t) { return sm90_decode_tile_bytes(t) + sm90_decode_sum_bytes(t) + 8 * 4 * t.stages + sm90_alignment; }
// Registers go to blocks of whole fours of warps.
constexpr int sm90_decode_register_limit(const NvidiaTile& t) {
    return min_of(255, nvidia_registers_per_unit / (round_up(sm90_decode_threads(t), 128) * t.blocks) / 8 * 8);
}
// Output, scores and rounded scores, the query, and what addresses and maxima take.
constexpr int sm90_decode_register_estimate(const NvidiaTile& t) {
    if (sm90_decode_is_wide(t)) return sm90_register_estimate(t) + (t.overlapped ? 0 : t.block_kv / 4);
    return round_up(t.head_dim_v, 16) / 2 + t.block_kv / t.workers * 3 / 4 + round_up(t.head_dim, 16) / 4 + 40;
}

}  // namespace tilewright::kernel
