// Threads, shared memory and registers of a kernel from its config, by the arithmetic that the kernels share.
#include "model/resources.h"

#include <algorithm>

#include "backends/cpu/cpu_features.h"
#include "backends/family_text.h"
#include "kernels/resources_amd.h"
#include "kernels/resources_cpu.h"
#include "kernels/resources_nvidia.h"

namespace tilewright {
namespace {

kernel::NvidiaTile nvidia_tile(const KernelSpec& spec) {
    const Config& c = spec.config;
    return {int(spec.problem.head_dim), int(spec.problem.head_dim_v), int(size_of(spec.problem.dtype)), c.block_q, c.block_kv, c.stages, c.workers, c.blocks, c.overlapped != 0, c.persistent != 0};
}

ResourceEstimate sm90_resources(const KernelSpec& spec) {
    kernel::NvidiaTile tile = nvidia_tile(spec);
    ResourceEstimate result;
    result.threads = kernel::sm90_threads(tile);
    result.shared_bytes = kernel::sm90_shared_bytes(tile);
    const Problem& p = spec.problem;
    const bool masked = p.window_left != -1 || p.window_right != -1;
    result.registers = kernel::sm90_register_estimate(tile) + kernel::sm90_variant_registers(tile, p.softcap, p.bias, p.alibi) +
                       kernel::sm90_half_registers(tile, masked, spec.config.turns != 0) + kernel::sm90_ring_registers(tile, masked, spec.config.turns != 0);
    result.register_budget = kernel::sm90_register_limit(tile.workers, tile.blocks);
    result.registers_held = kernel::sm90_registers_launched(tile.workers, tile.blocks);  // divided anew at run time
    result.padded_dims = kernel::round_up(tile.head_dim, 16) + kernel::round_up(tile.head_dim_v, 8);
    return result;
}

ResourceEstimate sm80_resources(const KernelSpec& spec) {
    kernel::NvidiaTile tile = nvidia_tile(spec);
    ResourceEstimate result;
    result.threads = kernel::sm80_threads(tile);
    result.shared_bytes = kernel::sm80_shared_bytes(tile);
    const Problem& p = spec.problem;
    result.registers = kernel::sm80_register_estimate(tile, kernel::sm80_schedule_registers(tile) + kernel::sm80_variant_registers(tile, p.softcap, p.bias, p.alibi));
    result.register_budget = kernel::sm80_register_limit(tile);
    result.registers_held = std::min(result.registers, result.register_budget);
    result.padded_dims = kernel::round_up(tile.head_dim, 16) + kernel::round_up(tile.head_dim_v, 16);
    return result;
}

// Accumulators are float: a wave's lane holds its share of rows * columns, and rounded probabilities take half that. Q, K and V
// are on their way through registers. The last constants are what compiled kernels were seen to take beside these.
ResourceEstimate amd_resources(const KernelSpec& spec, const Arch& arch) {
    const Config& c = spec.config;
    auto family = arch.family == Family::cdna ? kernel::AmdFamily::cdna : arch.family == Family::rdna3 ? kernel::AmdFamily::rdna3 : kernel::AmdFamily::rdna4;
    auto needs = kernel::amd_resources(family, {c.block_q, c.block_kv, c.stages, c.workers, int(spec.problem.head_dim), int(spec.problem.head_dim_v)});
    int rows = c.block_q / c.workers, scores = rows * c.block_kv / needs.wave, output = rows * needs.value_dim / needs.wave;
    int probabilities = family == kernel::AmdFamily::rdna3 ? scores : scores / 2;  // RDNA3's operands are held twice
    int queries = needs.queries_in_lds ? 0 : rows * needs.key_dim / needs.wave / 2;
    int copies = c.block_kv * (needs.key_dim + needs.value_dim) / 2 / needs.threads;
    ResourceEstimate result;
    result.threads = needs.threads;
    result.shared_bytes = needs.shared_bytes;
    result.registers = scores + output + probabilities + queries + copies + (family == kernel::AmdFamily::rdna3 ? 72 : 58);
    // Overlapped, two tiles of scores live at once, and on RDNA the compiler keeps the operands of both products.
    if (c.overlapped) result.registers += family == kernel::AmdFamily::cdna ? scores + 24 : 128;
    // Bounds of a mask, and beside 256 columns of output everything else on RDNA3.
    if (family != kernel::AmdFamily::cdna && spec.problem.window_right != -1) result.registers += 28;
    if (family == kernel::AmdFamily::rdna3 && needs.value_dim > 128) result.registers += 40;
    // Beyond 256 values move between the two halves of CDNA's file, and some are held in both.
    if (family == kernel::AmdFamily::cdna) result.registers += std::max(0, result.registers - 256) * 3 / 2;
    int per_simd = int(arch.registers_per_unit / arch.simds_per_unit / arch.warp_size);
    result.register_budget = std::min(arch.max_registers_per_thread, per_simd / std::max(1, c.blocks) / arch.register_granularity * arch.register_granularity);
    // The compiler takes more where it is free to: seen on gfx942 with one wave per SIMD asked for.
    result.registers_held = std::min(result.registers * 13 / 10, result.register_budget);
    // A lone wave of CDNA has 512, but the second half are AGPRs: what does not fit the first is moved there and back, then spilled.
    if (family == kernel::AmdFamily::cdna) result.register_budget = std::min(result.register_budget, 256);
    result.padded_dims = needs.key_dim + needs.value_dim;
    return result;
}

ResourceEstimate cpu_resources(const KernelSpec& spec) {
    const Config& c = spec.config;
    kernel::CpuScratch scratch = kernel::cpu_scratch(int(spec.problem.head_dim), int(spec.problem.head_dim_v), c.block_q, c.block_kv, cpu_features().vector_floats, c.dot16 != 0);
    ResourceEstimate result;
    result.shared_bytes = scratch.bytes();
    result.padded_dims = scratch.depth + scratch.width;
    return result;
}

// What the kernel's text says: registers are not estimated, so the compiler's limit stands for them.
Result<ResourceEstimate> resources_of_text(const KernelSpec& spec, const Arch& arch) {
    TILEWRIGHT_ASSIGN_OR_RETURN(FamilyText text, family_text(spec, arch));
    ResourceEstimate result;
    result.threads = text.threads, result.shared_bytes = text.shared_bytes + text.static_shared_bytes;
    result.padded_dims = spec.problem.head_dim + spec.problem.head_dim_v;
    if (arch.registers_per_unit == 0) return result;
    int64_t threads = int64_t{result.threads} * std::max(1, spec.config.blocks), granularity = arch.register_granularity;
    if (arch.backend == "amd") threads = int64_t{arch.warp_size} * std::max(1, spec.config.blocks) * arch.simds_per_unit;
    int64_t most = std::min<int64_t>(arch.max_registers_per_thread, arch.registers_per_unit / threads / granularity * granularity);
    result.register_budget = result.registers_held = int(most);
    return result;
}

}  // namespace

Family kernel_family(const KernelSpec& spec, const Arch& arch) {
    bool falls_back = arch.family == Family::sm90 && !kernel::takes_tensor_maps(int(size_of(spec.problem.dtype)), spec.aligned);
    return falls_back ? Family::sm80 : arch.family;
}

Result<ResourceEstimate> estimate_resources(const KernelSpec& spec, const Arch& arch) {
    if (spec.kind != KernelKind::attention_forward) return resources_of_text(spec, arch);
    switch (kernel_family(spec, arch)) {
    case Family::cpu: return cpu_resources(spec);
    case Family::sm90: return sm90_resources(spec);
    case Family::sm80: return sm80_resources(spec);
    case Family::cdna:
    case Family::rdna3:
    case Family::rdna4: return amd_resources(spec, arch);
    }
    return Status(StatusCode::internal, "unknown family of " + arch.name);
}

}  // namespace tilewright
