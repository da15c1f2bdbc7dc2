// Threads, shared memory and registers of a kernel from its config.
#include "model/resources.h"

#include <algorithm>

namespace tilewright {
namespace {

int round_up(int64_t x, int multiple) { return int((x + multiple - 1) / multiple * multiple); }

// Accumulators are float: a lane of a warp that owns 16 rows holds 16 * columns / warp_size of them, and the rounded
// probabilities take half that. The constants are what is left over in compiled kernels: addresses, masks, row sums, and
// operands of the next product.
int matrix_registers(const KernelSpec& spec, const Arch& arch, int d, int dv, int threads) {
    const Config& c = spec.config;
    int strips = std::max(1, c.block_q / c.workers / 16), per_lane = arch.warp_size / 16;
    int scores = c.block_kv / per_lane, output = dv / per_lane, probabilities = scores / 2;
    int copies = c.block_kv * d / 2 / threads + c.block_kv * dv / 2 / threads;  // the next K and V tile on their way to LDS
    switch (arch.family) {
    case Family::sm80: return strips * (scores + output + probabilities) + 40;
    case Family::cdna: return strips * (scores + output + probabilities + d / 8) + copies + 56;
    case Family::rdna3: return strips * (scores + output + scores) + copies + 72;  // operands are held twice, Q stays in LDS
    case Family::rdna4: return strips * (scores + output + probabilities + d / 4) + copies + 60;
    default: return 0;
    }
}

// Most registers a lane may have so that `blocks` blocks (NVIDIA) or waves per SIMD (AMD) are resident.
int register_budget(const Config& config, const Arch& arch, int threads) {
    int64_t lanes = arch.backend == "amd" ? int64_t(config.blocks) * arch.warp_size * arch.simds_per_unit
                                          : int64_t(config.blocks) * round_up(threads, arch.warp_size * arch.simds_per_unit);
    int64_t share = arch.registers_per_unit / lanes / arch.register_granularity * arch.register_granularity;
    return int(std::min<int64_t>(share, arch.max_registers_per_thread));
}

}  // namespace

int head_dim_granule(const Arch& arch) {
    switch (arch.family) {
    case Family::sm90: return 64;
    case Family::cdna: return 32;
    default: return 16;
    }
}

Result<ResourceEstimate> estimate_resources(const KernelSpec& spec, const Arch& arch) {
    if (spec.kind != KernelKind::attention_forward)
        return Status(StatusCode::unsupported, std::string("no resources are known of kernel ") + name(spec.kind));
    const Config& c = spec.config;
    int granule = head_dim_granule(arch);
    int d = round_up(spec.problem.head_dim, granule), dv = round_up(spec.problem.head_dim_v, granule);
    int64_t element = int64_t(size_of(spec.problem.dtype));
    int64_t query = element * c.block_q * d, kv = element * c.block_kv * (d + dv);
    ResourceEstimate result;
    switch (arch.family) {
    case Family::cpu:  // as floats: the query tile, K turned and V, scores and output
        result.shared_bytes = 4 * (int64_t(c.block_q) * (d + dv + c.block_kv) + int64_t(c.block_kv) * (d + dv));
        return result;
    case Family::sm90: {  // a producer and block_q / 64 consumer warpgroups; barriers, and alignment to 1024 bytes
        result.threads = 128 * (c.block_q / 64 + 1);
        result.shared_bytes = query + c.stages * kv + 256 + 1024;
        result.register_budget = register_budget(c, arch, result.threads);
        result.registers = result.register_budget;  // the pool is divided anew at run time, whatever the compiler counts
        return result;
    }
    case Family::sm80: result.shared_bytes = query + c.stages * kv; break;
    case Family::rdna3: result.shared_bytes = query + kv; break;
    case Family::cdna:
    case Family::rdna4: result.shared_bytes = kv; break;
    }
    result.threads = arch.warp_size * c.workers;
    result.register_budget = register_budget(c, arch, result.threads);
    result.registers = matrix_registers(spec, arch, d, dv, result.threads);
    return result;
}

}  // namespace tilewright
