// Sizes and work order of a launch.
#include "backends/launch.h"

#include <algorithm>
#include <cmath>

#include "backends/backward_plan.h"
#include "kernels/backward_bias.h"
#include "kernels/tile/tile.h"

namespace tilewright {
namespace {

// Heads that walk together: all, or those of a die where the dies have heads of their own.
int64_t walking(int64_t heads, int dies, int64_t sharers) {
    int64_t own = kernel::heads_of_die(static_cast<int>(heads), dies, static_cast<int>(sharers));
    return dies > 1 && own > 0 ? own : heads;
}

}  // namespace

float default_scale(const Problem& problem) { return static_cast<float>(1 / std::sqrt(static_cast<double>(problem.head_dim))); }

kernel::ForwardParameters sized_parameters(const Problem& problem, float scale, float softcap) {
    kernel::ForwardParameters p{};
    p.batch = static_cast<int>(problem.batch);
    p.heads_q = static_cast<int>(problem.heads_q), p.heads_kv = static_cast<int>(problem.heads_kv);
    p.seq_q = static_cast<int>(problem.seq_q), p.seq_kv = static_cast<int>(problem.seq_kv);
    p.scale = scale, p.softcap = softcap;
    p.diagonal = problem.alignment == Alignment::bottom_right ? p.seq_kv - p.seq_q : 0;
    // No distance between an aligned query and a key is larger, so sums of positions stay far below 2^31.
    int64_t unbounded = problem.seq_q + problem.seq_kv;
    auto bound = [&](int64_t window) { return static_cast<int>(window < 0 ? unbounded : std::min(window, unbounded)); };
    p.window_left = bound(problem.window_left), p.window_right = bound(problem.window_right);
    return p;
}

void fill_work_order(const KernelSpec& spec, kernel::ForwardParameters& p, int dies) {
    int group = p.heads_q / p.heads_kv, packed = spec.config.packs_heads ? group : 1;
    int64_t rows = int64_t{p.seq_q} * packed, heads = int64_t{p.batch} * (p.heads_q / packed);
    p.tiles = static_cast<int>(heads * ((rows + spec.config.block_q - 1) / spec.config.block_q));
    int64_t kv_bytes = int64_t{p.seq_kv} * (spec.problem.head_dim + spec.problem.head_dim_v) * static_cast<int64_t>(size_of(spec.problem.dtype));
    heads = walking(heads, dies, group / packed);
    int64_t section = heads;
    if (spec.config.section_kb > 0 && kv_bytes > 0) section = std::max<int64_t>(1, int64_t{spec.config.section_kb} * 1024 / kv_bytes) * (group / packed);
    // As many sections, all alike: a short last one would leave its heavy tiles to the end.
    if (section < heads) {
        int64_t sections = (heads + section - 1) / section, together = group / packed;
        section = ((heads + sections - 1) / sections + together - 1) / together * together;
    }
    p.section_heads = static_cast<int>(std::clamp<int64_t>(section, 1, std::max<int64_t>(1, heads)));
}

void fill_work_order(const KernelSpec& spec, kernel::PackedParameters& packed, int dies) {
    kernel::ForwardParameters& p = packed.forward;
    fill_work_order(spec, p, dies);
    int group = spec.config.packs_heads ? p.heads_q / p.heads_kv : 1;
    int64_t slots = int64_t{p.seq_q} * group / spec.config.block_q + packed.sequences;
    p.tiles = packed.sequences == 0 || p.seq_q == 0 ? 0 : static_cast<int>(slots * (p.heads_q / group));
}

namespace {
// Of a pass of the backward: heads that walk together while what they walk over, and sums of dQ, find so much cache.
int backward_section(const KernelSpec& spec, int64_t columns, int64_t heads) {
    int64_t section = heads, bytes = columns * (spec.problem.head_dim + spec.problem.head_dim_v) * static_cast<int64_t>(size_of(spec.problem.dtype));
    if (spec.config.dq) bytes += columns * kernel::backward_sum_columns(static_cast<int>(spec.problem.head_dim)) * static_cast<int64_t>(sizeof(float));
    if (spec.config.section_kb > 0 && bytes > 0) section = int64_t{spec.config.section_kb} * 1024 / bytes;
    return static_cast<int>(std::clamp<int64_t>(section, 1, std::max<int64_t>(1, heads)));
}
// Of a persistent pass over keys, the KV heads that the prologue does: those whose tiles come first, in whole sections (most devices have fewer
// multiprocessors than `first_tiles`), and those that the pass has no time for beside the products, of which there are as many for a query as it sees keys.
int first_heads(const KernelSpec& spec, const kernel::ForwardParameters& p) {
    constexpr int64_t first_tiles = 160, enough_keys = 1024;  // measured: docs/performance-log.md
    const int64_t heads = int64_t{p.batch} * p.heads_kv, blocks = (int64_t{p.seq_kv} + spec.config.block_kv - 1) / spec.config.block_kv;
    const int64_t section = backward_section(spec, int64_t{p.seq_q} * p.heads_q / p.heads_kv, heads), tiles = section * std::max<int64_t>(1, blocks);
    const int64_t others = heads * std::min(keys_seen(spec.problem, p.seq_kv), enough_keys) / enough_keys;
    return static_cast<int>(std::min(heads, std::max(heads - others, (first_tiles + tiles - 1) / tiles * section)));
}
}  // namespace

void fill_work_order(const KernelSpec& spec, kernel::BackwardParameters& backward, int dies) {
    kernel::ForwardParameters& p = backward.forward;
    int64_t rows = backward.padded_queries, columns = 0, block = kernel::backward_query_block, heads = int64_t{p.batch} * p.heads_q;
    if (is_over_keys(spec.kind)) rows = p.seq_kv, block = spec.config.block_kv, heads = int64_t{p.batch} * p.heads_kv, columns = int64_t{p.seq_q} * p.heads_q / p.heads_kv;
    if (spec.kind == KernelKind::attention_backward_bias) {
        p.tiles = backward.bias_gradient ? static_cast<int>(kernel::bias_gradient_tiles(backward, spec.config.block_q, spec.config.block_kv)) : 0;
        p.section_heads = 1;
        return;
    }
    if (spec.kind == KernelKind::attention_backward_queries) rows = p.seq_q, block = spec.config.block_q, columns = p.seq_kv;
    if (spec.kind == KernelKind::attention_backward_sink) rows = block, heads = p.heads_q;
    int64_t blocks = (rows + block - 1) / block;
    if (spec.problem.packed && (is_over_keys(spec.kind) || spec.kind == KernelKind::attention_backward_queries)) blocks = backward.sequences == 0 ? 0 : rows / block + backward.sequences;  // slots (kernels/tile/tile.h)
    p.tiles = static_cast<int>(heads * blocks);
    if (!spec.problem.packed) heads = walking(heads, dies, is_over_keys(spec.kind) ? 1 : p.heads_q / p.heads_kv);  // packed_backward_tile_at() knows no dies
    p.section_heads = backward_section(spec, columns, heads);
    if (!spec.config.persistent) return;
    backward.prepared_heads = first_heads(spec, p);
    if (spec.kind == KernelKind::attention_backward_prologue) p.tiles = static_cast<int>(int64_t{backward.prepared_heads} * (p.heads_q / p.heads_kv) * blocks);
}

}  // namespace tilewright
