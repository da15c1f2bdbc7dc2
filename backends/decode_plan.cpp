// Units and workspace of a decode launch.
#include "backends/decode_plan.h"

#include <algorithm>

#include "kernels/arch/sm90_arguments.h"
#include "kernels/decode_part.h"

namespace tilewright {
namespace {

constexpr int64_t countable = int64_t{1} << 31;

int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }
int64_t whole_lines(int64_t bytes) { return ceil_div(bytes, 64) * 64; }

int64_t line_count(const KernelSpec& spec, int64_t seq_q, int64_t heads_q, int64_t heads_kv) {
    return heads_kv * ceil_div(seq_q * (heads_q / heads_kv), spec.config.block_q);
}

}  // namespace

bool decodes_by_copy_engine(const KernelSpec& spec, const Arch& arch) {
    return arch.family == Family::sm90 && kernel::takes_tensor_maps(static_cast<int>(size_of(spec.problem.dtype)), spec.aligned);
}

int64_t units_for(const KernelSpec& spec, const Arch& arch) {
    constexpr int64_t of_thread = 4, of_multiprocessor = 3;
    if (spec.config.units > 0) return int64_t{spec.config.units} * arch.units;
    if (arch.family == Family::cpu) return arch.units > 1 ? of_thread * arch.units : 1;
    return (decodes_by_copy_engine(spec, arch) ? spec.config.blocks : of_multiprocessor) * arch.units;
}

Result<DecodePlan> plan_decode(const KernelSpec& spec, int64_t all_units, int splits) {
    const Problem& p = spec.problem;
    if (splits < 0) return invalid_argument("splits is " + std::to_string(splits) + "; it must be 0, for as many as the device likes, or more");
    DecodePlan plan;
    plan.lines = line_count(spec, p.seq_q, p.heads_q, p.heads_kv);
    int64_t tiles = p.batch * std::max<int64_t>(1, ceil_div(p.seq_kv, spec.config.block_kv));
    if (p.batch == 0 || plan.lines == 0) return plan;
    int64_t wanted = std::max<int64_t>(1, all_units / plan.lines);  // one unit more would have to wait for all others
    int64_t units = std::min(splits > 0 ? splits : wanted, tiles);
    if (int64_t most = std::max({tiles, p.batch * plan.lines, 2 * units * plan.lines}); most >= countable)
        return invalid_argument("KV tiles, sequences or units of all heads are " + std::to_string(most) + "; they must be below " + std::to_string(countable));
    plan.units = static_cast<int>(units);
    if (units == 1) return plan;
    int64_t rows = 2 * units * plan.lines * spec.config.block_q;
    plan.counter_bytes = whole_lines(4 * p.batch * plan.lines);
    plan.state_bytes = whole_lines(8 * rows);
    plan.out_bytes = 4 * rows * kernel::partial_columns(static_cast<int>(p.head_dim_v));
    return plan;
}

void use_plan(const DecodePlan& plan, void* workspace, kernel::DecodeParameters& parameters) {
    parameters.units = plan.units;
    if (plan.workspace_bytes() == 0) return;
    char* bytes = static_cast<char*>(workspace);
    parameters.arrived = reinterpret_cast<unsigned*>(bytes);
    parameters.partial_state = reinterpret_cast<float*>(bytes + plan.counter_bytes);
    parameters.partial_out = reinterpret_cast<float*>(bytes + plan.counter_bytes + plan.state_bytes);
}

int decode_units(const KernelSpec& spec, const kernel::DecodeParameters& parameters) {
    const kernel::ForwardParameters& p = parameters.forward;
    if (p.batch == 0) return 0;
    return static_cast<int>(line_count(spec, p.seq_q, p.heads_q, p.heads_kv)) * parameters.units;
}

}  // namespace tilewright
