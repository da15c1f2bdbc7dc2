// The NVIDIA texts of the backward's kernels: which passes take the copy engine, and what their tiles must be.
#include <algorithm>
#include <utility>

#include "backends/nvidia/nvidia_text.h"

namespace tilewright {
namespace {

using namespace nvidia;

// Of gradients, S and dP (with a softcap slopes too) and addresses; where dQ is given too, of gradients, P and dS rounded, and a part of dQ.
int sm90_backward_registers(const Problem& p, int columns, bool over_keys, bool gives_queries) {
    int gradients = (int)(p.head_dim + (over_keys ? p.head_dim_v : 0)) / 2, part = kernel::backward_sum_columns((int)p.head_dim) * columns / 256;
    int scores = gradients + columns * 5 / 4 + (p.softcap ? columns / 2 : 0) + 16;
    return gives_queries ? std::max(scores, gradients + columns / 2 + part + 40) : scores;
}

// What every pass by warpgroups asks of its tiles.
Status check_sm90_backward(const KernelSpec& spec) {
    const Config& c = spec.config;
    const Problem& p = spec.problem;
    bool over_keys = is_over_keys(spec.kind);
    int rows = over_keys ? c.block_kv : c.block_q, columns = over_keys ? c.block_q : c.block_kv;
    const char *of_rows = over_keys ? "block_kv" : "block_q", *of_columns = over_keys ? "block_q" : "block_kv";
    if (c.workers < 1 || c.workers > 2) return refuse("workers", c.workers, "the backward's warpgroups are 1 or 2 beside the one that loads");
    if (rows != 64 * c.workers) return refuse(of_rows, rows, "it must be 64 rows for each of " + std::to_string(c.workers) + " warpgroups");
    if (columns % 16 || columns > 128) return refuse(of_columns, columns, "it must be a multiple of 16, up to 128");
    if (kernel::backward_query_block % c.block_q) return refuse("block_q", c.block_q, "the backward's must divide " + std::to_string(kernel::backward_query_block));
    if (p.head_dim % 8 || p.head_dim_v % 8) return refuse("head_dim", p.head_dim % 8 ? p.head_dim : p.head_dim_v, "aligned rows have a multiple of 8 columns");
    if (c.blocks != 1) return refuse("blocks", c.blocks, "the backward always has one block on a multiprocessor, which draws tiles: it must be 1");
    return {};
}

// Products of statistics, whatever the elements are, of scores, and of parts of dQ that are `part` columns wide.
std::string sm90_backward_prelude(DType dtype, int columns, int part) {
    return wgmma("wgmma_statistics", columns, DType::bf16, false, false, false) + wgmma("wgmma_scores", columns, dtype, false, true) + wgmma("wgmma_scores_first", columns, dtype, false, false, false) +
           wgmma("wgmma_queries", part, dtype, false, true, true, true) + wgmma("wgmma_queries_first", part, dtype, false, false, false, true);
}

// Of a pass by warpgroups, whose needs are checked against what the multiprocessor has. `part`: columns of a worker's part of dQ.
Result<FamilyText> by_warpgroups(const KernelSpec& spec, const Arch& arch, const char* header, const char* type, int registers, int64_t shared_bytes, int part) {
    const Config& c = spec.config;
    // Persistent ones have eight fewer and may spill some: what they are worth is for measurements to say.
    if (int limit = kernel::sm90_register_limit(c.workers, 1, kernel::sm90_backward_registers_loading); registers > limit)
        return refuse("registers of a thread, estimated,", registers, "it has " + std::to_string(limit));
    if (shared_bytes > arch.shared_bytes_per_block) return refuse("shared bytes of a block", shared_bytes, arch.name + " allows " + std::to_string(arch.shared_bytes_per_block));
    FamilyText text;
    text.prelude = sm90_backward_prelude(spec.problem.dtype, is_over_keys(spec.kind) ? c.block_q : c.block_kv, part);
    text.header = header;
    text.type = type;
    text.entry = entry_text(spec);
    text.threads = 128 * (c.workers + 1);
    text.shared_bytes = shared_bytes;
    return text;
}

Result<FamilyText> sm90_backward_text(const KernelSpec& spec, const Arch& arch) {
    const Config& c = spec.config;
    const Problem& p = spec.problem;
    bool over_keys = is_over_keys(spec.kind);
    int rows = over_keys ? c.block_kv : c.block_q, columns = over_keys ? c.block_q : c.block_kv, d = (int)p.head_dim, d_v = (int)p.head_dim_v;
    TILEWRIGHT_RETURN_IF_ERROR(check_sm90_backward(spec));
    if (c.dq && d > 128) return refuse("head_dim", d, "up to 128 columns of dQ are summed beside dK and dV: dq must be 0");
    if (c.dq && (c.workers != 2 || (c.block_q != 64 && c.block_q != 128))) return refuse("block_q", c.block_q, "two warpgroups share 64 or 128 queries of dQ");
    if (c.persistent && !c.dq) return refuse("persistent", 1, "a pass that does not sum dQ has no work row by row to do beside: it must be 0");
    int part = c.dq && over_keys ? kernel::backward_sum_columns(d) * columns / 128 : 32;
    TILEWRIGHT_ASSIGN_OR_RETURN(FamilyText text, by_warpgroups(spec, arch, "arch/sm90_backward.h", "Sm90Backward<Config>", sm90_backward_registers(p, columns, over_keys, c.dq != 0),
                                                               kernel::sm90_backward_shared(rows, columns, d, d_v, c.stages, over_keys, c.dq != 0, c.dq && c.persistent).bytes, part));
    text.prelude += wgmma("wgmma_output", d, p.dtype, true, true) + (over_keys && d_v != d ? wgmma("wgmma_output", d_v, p.dtype, true, true) : "");
    return text;
}

// Of one gradient, S and dP (with a softcap slopes too) and addresses; where dQ is given too, of dS rounded and a part of dQ.
int sm90_wide_registers(const KernelSpec& spec, int columns) {
    const Problem& p = spec.problem;
    int gradient = (int)(gives_carried(spec.kind) ? p.head_dim_v : p.head_dim) / 2;
    int scores = gradient + columns * (gives_carried(spec.kind) ? 3 : 5) / 4 + (p.softcap ? columns / 2 : 0) + 16;
    bool gives_queries = spec.config.dq && spec.kind == KernelKind::attention_backward_keys_alone;
    return gives_queries ? std::max(scores, gradient + columns / 4 + kernel::backward_sum_columns((int)p.head_dim) * columns / 256 + 16) : scores;
}

Result<FamilyText> sm90_wide_backward_text(const KernelSpec& spec, const Arch& arch) {
    const Config& c = spec.config;
    const Problem& p = spec.problem;
    bool over_keys = is_over_keys(spec.kind), carried = gives_carried(spec.kind), gives_queries = c.dq && over_keys && !carried;
    int rows = over_keys ? c.block_kv : c.block_q, columns = over_keys ? c.block_q : c.block_kv, d = (int)p.head_dim, d_v = (int)p.head_dim_v;
    TILEWRIGHT_RETURN_IF_ERROR(check_sm90_backward(spec));
    if (c.persistent) return refuse("persistent", 1, "gradients in passes of their own leave no shared memory for work row by row: it must be 0");
    if (c.dq == 2) return refuse("dq", 2, "gradients in passes of their own leave no room for an order of the sums of dQ: it must be 0 or 1");
    if (c.dq && (c.workers != 2 || c.block_q != 64)) return refuse("block_q", c.block_q, "two warpgroups share 64 queries of dQ");
    int part = gives_queries ? kernel::backward_sum_columns(d) * columns / 128 : 32;
    TILEWRIGHT_ASSIGN_OR_RETURN(FamilyText text, by_warpgroups(spec, arch, "arch/sm90_backward_wide.h", "Sm90BackwardWide<Config>", sm90_wide_registers(spec, columns),
                                                               kernel::sm90_wide_shared({rows, columns, d, d_v, c.stages, over_keys, !carried, carried, gives_queries, c.dq && over_keys && !p.softcap}).bytes, part));
    text.prelude += wgmma("wgmma_output", carried ? d_v : d, p.dtype, true, true);
    return text;
}

Result<FamilyText> sm80_backward_text(const KernelSpec& spec, const Arch& arch) {
    const Config& c = spec.config;
    if (c.dq) return refuse("dq", c.dq, "it must be 0 but for aligned 16-bit tensors on sm_90a: the gradient of the queries has a pass of its own");
    const Problem& p = spec.problem;
    kernel::Sm80BackwardTile tile{c.block_q, c.block_kv, (int)p.head_dim, (int)p.head_dim_v, (int)size_of(p.dtype), c.stages, c.workers, is_over_keys(spec.kind), gives_scored(spec.kind), gives_carried(spec.kind), p.softcap, gives_bias(spec.kind)};
    if (tile.over_keys) std::swap(tile.rows, tile.columns);
    const char *of_rows = tile.over_keys ? "block_kv" : "block_q", *of_columns = tile.over_keys ? "block_q" : "block_kv";
    if (tile.rows % (16 * c.workers)) return refuse(of_rows, tile.rows, "it must be a multiple of 16 rows for each of " + std::to_string(c.workers) + " warps");
    if (tile.columns % 16 || tile.columns > 128) return refuse(of_columns, tile.columns, "it must be a multiple of 16, up to 128");
    if (kernel::backward_query_block % c.block_q) return refuse("block_q", c.block_q, "the backward's must divide " + std::to_string(kernel::backward_query_block));
    if (c.persistent) return refuse("persistent", 1, "a block does one tile of the backward: it must be 0");
    TILEWRIGHT_RETURN_IF_ERROR(check_limits(spec, arch, 32 * c.workers, sm80_backward_shared(tile).bytes, sm80_backward_register_estimate(tile),
                                            sm80_register_limit(tile_of(spec))));
    FamilyText text;
    text.header = "arch/sm80_backward.h";
    text.type = "Sm80Backward<Config>";
    text.entry = entry_text(spec);
    text.threads = 32 * c.workers;
    text.shared_bytes = sm80_backward_shared(tile).bytes;
    return text;
}

}  // namespace

bool takes_copy_engine_backward(const Problem& problem, const Arch& arch, bool aligned) {
    return arch.family == Family::sm90 && kernel::takes_tensor_maps((int)size_of(problem.dtype), aligned) && !problem.bias && !problem.packed && problem.head_dim % 8 == 0 && problem.head_dim_v % 8 == 0 &&
           std::max(problem.head_dim, problem.head_dim_v) <= 256;
}
bool takes_sm90_backward(const Problem& problem, const Arch& arch, bool aligned) {
    return takes_copy_engine_backward(problem, arch, aligned) && sm90_backward_registers(problem, 64, true, false) <= kernel::sm90_register_limit(2, 1, kernel::sm90_backward_registers_loading);
}
bool takes_sm90_wide_backward(const Problem& problem, const Arch& arch, bool aligned) {
    return takes_copy_engine_backward(problem, arch, aligned) && !takes_sm90_backward(problem, arch, aligned);
}

namespace nvidia {

Result<FamilyText> backward_text(const KernelSpec& spec, const Arch& arch) {
    if (spec.kind == KernelKind::attention_backward_prologue || spec.kind == KernelKind::attention_backward_sink || spec.kind == KernelKind::attention_backward_epilogue)
        return plain_text(spec, "arch/nvidia_backward_rows.h", "NvidiaBackwardRows<Config>", kernel::nvidia_backward_rows_threads);
    bool together = spec.kind == KernelKind::attention_backward_keys || spec.kind == KernelKind::attention_backward_queries;
    if (together && takes_sm90_backward(spec.problem, arch, spec.aligned)) return sm90_backward_text(spec, arch);
    bool apart = spec.kind == KernelKind::attention_backward_keys_alone || spec.kind == KernelKind::attention_backward_values_alone || spec.kind == KernelKind::attention_backward_queries;
    if (apart && takes_sm90_wide_backward(spec.problem, arch, spec.aligned)) return sm90_wide_backward_text(spec, arch);
    return sm80_backward_text(spec, arch);
}

}  // namespace nvidia
}  // namespace tilewright
