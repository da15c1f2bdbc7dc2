// The constraints of the search space.
#include "model/space_check.h"

#include <algorithm>
#include <bit>

#include "backends/family_text.h"
#include "model/model.h"

namespace tilewright {
namespace {

Status unsupported(const std::string& message) { return {StatusCode::unsupported, message}; }

Status multiple_of(const char* field, int value, int factor, const std::string& why) {
    if (value > 0 && value % factor == 0) return {};
    return unsupported(std::string(field) + " is " + std::to_string(value) + "; it must be a multiple of " + std::to_string(factor) + " " + why);
}

// Combinations that can run but never differ from, or never beat, another candidate; and fields that follow from others.
Status check_use(const Space& space, const Config& c) {
    const Problem& p = space.problem;
    Family family = kernel_family(dense_spec(p, c), space.arch);
    if (c.turns && c.workers == 1) return unsupported("turns is 1, but a single worker has nobody to take turns with");
    if (c.packs_heads && p.heads_q == p.heads_kv) return unsupported("packs_heads is 1, but every KV head has a single query head");
    if (c.section_kb > 0 && heads_apart(p) == 1) return unsupported("section_kb is set, but there is one head");
    if (p.operation != Operation::backward && c.dq) return unsupported("dq is " + std::to_string(c.dq) + ", but only a backward has a gradient of the queries");
    if (p.operation != Operation::decode && c.units) return unsupported("units is " + std::to_string(c.units) + ", but only decoding cuts keys into units");
    if (p.operation != Operation::forward) return {};
    if (family == Family::sm90 && c.block_q != 64 * c.workers)
        return unsupported("workers is " + std::to_string(c.workers) + "; a warpgroup has 64 rows, and block_q is " + std::to_string(c.block_q));
    if (family != Family::cpu && family != Family::sm90)
        return multiple_of("block_q", c.block_q, 16 * c.workers, "(16 rows for each of " + std::to_string(c.workers) + " workers)");
    return {};
}

// The backward's kernels may have no room for a config, and take another one.
Status check_taken(const Config& config, const OperationPlan& plan) {
    for (const KernelSpec& spec : plan.kernels)
        if (is_over_keys(spec.kind) && !(spec.config == config))
            return unsupported("block_q " + std::to_string(config.block_q) + " and block_kv " + std::to_string(config.block_kv) + " with workers " + std::to_string(config.workers) +
                               ", stages " + std::to_string(config.stages) + " and dq " + std::to_string(config.dq) + " are replaced by " + to_json(spec.config));
    return {};
}

Status check_registers(const KernelSpec& spec, const ResourceEstimate& resources, const Arch& arch) {
    int needed = resources.registers, budget = resources.register_budget;
    // AMD's estimate is so rough that within a quarter the compiler has the last word.
    int tolerance = arch.backend == "amd" ? budget / 4 : 0;
    const bool is_rdna = arch.family == Family::rdna3 || arch.family == Family::rdna4;
    if (is_rdna && spec.problem.head_dim_v > 128 && spec.config.packs_heads && spec.problem.window_right != -1)
        return unsupported("packs_heads is 1; under a mask RDNA has no register left for it beside " + std::to_string(spec.problem.head_dim_v) + " columns of output");
    // But a few waves that hold a whole KV tile on its way to LDS always spill, on RDNA earlier, and on CDNA beside 256 columns and a mask.
    const int64_t most_in_flight = is_tight(spec.problem, arch) ? 48 : 96;
    if (int64_t held = spec.config.block_kv * (spec.problem.head_dim + spec.problem.head_dim_v) / 2 / resources.threads;
        arch.backend == "amd" && held > most_in_flight)
        return unsupported("keys and values on their way take " + std::to_string(held) + " registers per lane; more than " + std::to_string(most_in_flight) +
                           " spill: use more workers or a smaller block_kv");
    if (needed <= budget + tolerance) return {};
    return unsupported("needs about " + std::to_string(needed) + " registers per lane; " + arch.name + " leaves " + std::to_string(budget) + " with blocks " +
                       std::to_string(spec.config.blocks) + " and workers " + std::to_string(spec.config.workers));
}

}  // namespace

int64_t heads_apart(const Problem& problem) { return (problem.packed ? 1 : problem.batch) * problem.heads_q; }

int section_kb_of(const Arch& arch, int parts) { return int(std::bit_ceil(uint64_t(arch.last_level_cache_bytes / 1024 / parts))); }

bool is_tight(const Problem& p, const Arch& arch) {
    if (arch.family == Family::rdna3 || arch.family == Family::rdna4) return std::max(p.head_dim, p.head_dim_v) > 64;
    const bool masked = p.window_left != -1 || p.window_right != -1;
    return arch.family == Family::cdna && masked && p.head_dim_v > 128;
}

Status judge(const Space& space, const Config& config, Constraint& constraint) {
    constraint = Constraint::use;
    TILEWRIGHT_RETURN_IF_ERROR(check_use(space, config));
    TILEWRIGHT_ASSIGN_OR_RETURN(OperationPlan plan, plan_operation(space.problem, config, space.arch, dense_traits(space.problem)));
    TILEWRIGHT_RETURN_IF_ERROR(check_taken(config, plan));
    for (const KernelSpec& spec : plan.kernels) {
        constraint = Constraint::kernel;
        TILEWRIGHT_RETURN_IF_ERROR(family_text(spec, space.arch).status());
        constraint = Constraint::limits;
        TILEWRIGHT_ASSIGN_OR_RETURN(ResourceEstimate resources, estimate_resources(spec, space.arch));
        TILEWRIGHT_RETURN_IF_ERROR(fits(resources, space.arch));
        constraint = Constraint::registers;
        TILEWRIGHT_RETURN_IF_ERROR(check_registers(spec, resources, space.arch));
    }
    return {};
}

Status check(const Space& space, const Config& config) {
    Constraint constraint;
    return judge(space, config, constraint);
}

const char* name(Constraint constraint) {
    switch (constraint) {
        case Constraint::use:
            return "use";
        case Constraint::kernel:
            return "kernel";
        case Constraint::limits:
            return "limits";
        case Constraint::registers:
            return "registers";
    }
    return "unknown";
}

}  // namespace tilewright
