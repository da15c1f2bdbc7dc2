// What NVIDIA's families add to the text of a kernel: the arch header, wgmma wrappers, the entry point; and what they cannot run.
#include "backends/nvidia/nvidia_text.h"

namespace tilewright {

using kernel::NvidiaTile;

namespace {

std::string list(int count, const char* before, int first, const char* after) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i ? ", " : "") + (before + std::to_string(first + i)) + after;
    return text;
}

}  // namespace

namespace nvidia {

NvidiaTile tile_of(const KernelSpec& spec) {
    const Config& c = spec.config;
    return {(int)spec.problem.head_dim, (int)spec.problem.head_dim_v, (int)size_of(spec.problem.dtype), c.block_q, c.block_kv, c.stages, c.workers, c.blocks, c.overlapped != 0, c.persistent != 0};
}

std::string wgmma(const char* name, int n, DType dtype, bool left_in_registers, bool accumulate, bool keeps, bool turned_right) {
    std::string type = dtype == DType::bf16 ? "bf16" : "f16", count = std::to_string(n / 2);
    auto operand = [&](int i) { return "%" + std::to_string(n / 2 + i); };
    std::string instruction = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k16.f32." + type + "." + type + " {" + list(n / 2, "%", 0, "") + "}, ";
    std::string text = "TILEWRIGHT_DEVICE void " + std::string(name) + "(float (&d)[" + count + "], ";
    if (left_in_registers) {
        text += "unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned long long b) {\n    asm volatile(\"" + instruction + "{" + list(4, "%", n / 2, "") + "}, " +
                operand(4) + ", 1, 1, 1, 1;\"";
    } else {
        text += std::string("unsigned long long a, unsigned long long b) {\n    asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, ") + (accumulate ? "1" : "0") + ", 0;\\n" +
                instruction + operand(0) + ", " + operand(1) + ", p, 1, 1, 0, " + (turned_right ? "1" : "0") + ";\\n}\"";
    }
    text += "\n        : " + list(n / 2, keeps ? "\"+f\"(d[" : "\"=f\"(d[", 0, "])") + " : ";
    text += left_in_registers ? "\"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3), \"l\"(b));\n}\n" : "\"l\"(a), \"l\"(b));\n}\n";
    return text;
}

Status check_limits(const KernelSpec& spec, const Arch& arch, int threads, int64_t shared_bytes, int registers, int register_limit) {
    const Config& c = spec.config;
    if (c.block_kv % 16 || c.block_kv > 256) return refuse("block_kv", c.block_kv, "NVIDIA's matrix units take keys by 16, up to 256");
    if (threads > arch.max_threads_per_block) return refuse("threads of a block", threads, arch.name + " allows " + std::to_string(arch.max_threads_per_block));
    if (shared_bytes > arch.shared_bytes_per_block)
        return refuse("shared bytes of a block", shared_bytes, arch.name + " allows " + std::to_string(arch.shared_bytes_per_block));
    if (int64_t all = c.blocks * (shared_bytes + arch.shared_reserved_per_block); all > arch.shared_bytes_per_unit)
        return refuse("shared bytes of " + std::to_string(c.blocks) + " blocks", all, arch.name + " has " + std::to_string(arch.shared_bytes_per_unit) + " on a multiprocessor");
    if (registers > register_limit)
        return refuse("registers of a thread, estimated,", registers, "of " + std::to_string(c.blocks) + " blocks of " + std::to_string(threads) + " threads each has " +
                                                                          std::to_string(register_limit));
    return {};
}

std::string entry_text(const KernelSpec& spec) {
    std::string kind = name(spec.kind);
    return "extern \"C\" __global__ void __launch_bounds__(Arch::threads, Config::blocks) " + kind + "(const __grid_constant__ Arch::Arguments arguments) {\n" +
           "    extern __shared__ __align__(1024) char shared[];\n    " + kind + "<Arch>(arguments, shared);\n}\n";
}

FamilyText plain_text(const KernelSpec& spec, const char* header, const char* type, int threads) {
    std::string kind = name(spec.kind);
    FamilyText text;
    text.header = header;
    text.type = type;
    text.entry = "extern \"C\" __global__ void __launch_bounds__(Arch::threads) " + kind + "(const __grid_constant__ Arch::Arguments arguments) {\n    " + kind +
                 "<Arch>(arguments, nullptr);\n}\n";
    text.threads = threads;
    return text;
}

}  // namespace nvidia

namespace {

using namespace nvidia;

std::string wgmma_prelude(const KernelSpec& spec, bool halves) {
    int block_kv = spec.config.block_kv;
    DType dtype = spec.problem.dtype;
    std::string text = wgmma("wgmma_output", (int)spec.problem.head_dim_v, dtype, true, true);
    auto add_scores = [&](int keys) { text += wgmma("wgmma_scores", keys, dtype, false, true) + wgmma("wgmma_scores_fresh", keys, dtype, false, false); };
    add_scores(block_kv);
    if (halves) add_scores(block_kv / 2);
    return text;
}

Result<FamilyText> sm80_text(const KernelSpec& spec, const Arch& arch) {
    const Config& c = spec.config;
    NvidiaTile tile = tile_of(spec);
    if (c.block_q % (16 * c.workers)) return refuse("block_q", c.block_q, "it must be a multiple of 16 rows for each of " + std::to_string(c.workers) + " warps");
    if (c.overlapped && c.stages < 2) return refuse("stages", c.stages, "overlapped needs 2: the next keys are read before this tile's are given back");
    if (c.turns) return refuse("turns", c.turns, "the warps of " + arch.name + "'s mma.sync kernels take none: it must be 0");
    TILEWRIGHT_RETURN_IF_ERROR(check_limits(spec, arch, sm80_threads(tile), sm80_shared_bytes(tile), sm80_register_estimate(tile), sm80_register_limit(tile)));
    FamilyText text;
    bool decodes = spec.kind == KernelKind::attention_decode;
    text.header = decodes ? "arch/sm80_decode.h" : "arch/sm80.h";
    text.type = decodes ? "Sm80Decode<Config>" : "Sm80<Config>";
    text.entry = entry_text(spec);
    text.threads = sm80_threads(tile);
    text.shared_bytes = sm80_shared_bytes(tile);
    return text;
}

Result<FamilyText> sm90_text(const KernelSpec& spec, const Arch& arch) {
    const Config& c = spec.config;
    NvidiaTile tile = tile_of(spec);
    if (c.workers > 3) return refuse("workers", c.workers, "at most 3 warpgroups find registers beside the one that loads");
    if (c.block_q != 64 * c.workers) return refuse("block_q", c.block_q, "it must be 64 rows for each of " + std::to_string(c.workers) + " warpgroups");
    if (tile.head_dim % 8 || tile.head_dim_v % 8) return refuse("head_dim", tile.head_dim % 8 ? tile.head_dim : tile.head_dim_v, "aligned rows have a multiple of 8 columns");
    if (c.stages > kernel::sm90_most_stages) return refuse("stages", c.stages, "there are barriers for " + std::to_string(kernel::sm90_most_stages));
    if (c.turns && c.workers == 1) return refuse("turns", c.turns, "one warpgroup has nobody to take turns with: it must be 0");
    if (int launched = kernel::sm90_registers_launched(c.workers, c.blocks), operands = sm90_operand_registers(tile); operands > launched)
        return refuse("registers of one matrix instruction", operands, "a thread of " + std::to_string(c.blocks) + " blocks of " + std::to_string(sm90_threads(tile)) +
                                                                           " threads each starts with " + std::to_string(launched));
    TILEWRIGHT_RETURN_IF_ERROR(
        check_limits(spec, arch, sm90_threads(tile), sm90_shared_bytes(tile), sm90_register_estimate(tile), kernel::sm90_register_limit(c.workers, c.blocks)));
    FamilyText text;
    text.prelude = wgmma_prelude(spec, kernel::sm90_halves(c.block_kv, spec.problem.window_left != -1 || spec.problem.window_right != -1));
    text.header = "arch/sm90.h";
    text.type = "Sm90<Config>";
    text.entry = entry_text(spec);
    text.threads = sm90_threads(tile);
    text.shared_bytes = sm90_shared_bytes(tile);
    return text;
}

Result<FamilyText> sm90_decode_text(const KernelSpec& spec, const Arch& arch) {
    const Config& c = spec.config;
    NvidiaTile tile = tile_of(spec);
    bool wide = sm90_decode_is_wide(tile);
    if (c.block_q != 16 && !wide) return refuse("block_q", c.block_q, "sm_90a decodes 16 rows by warps or 64 by a warpgroup");
    if (wide && c.workers != 1) return refuse("workers", c.workers, "one warpgroup decodes 64 rows: it must be 1");
    if (!wide && (c.workers > 16 || c.block_kv % (16 * c.workers))) return refuse("block_kv", c.block_kv, "it must be a multiple of 16 keys for each of " + std::to_string(c.workers) + " warps, at most 16");
    if (c.overlapped && !wide) return refuse("overlapped", 1, "warps that share the keys of a tile have nothing to overlap: it must be 0");
    if (c.overlapped && c.stages < 2) return refuse("stages", c.stages, "overlapped needs 2: the next keys are read before this tile's are given back");
    if (c.turns || c.persistent) return refuse(c.turns ? "turns" : "persistent", 1, "a block decodes one unit, with nobody to take turns with: it must be 0");
    if (spec.paged && (c.block_kv & (c.block_kv - 1))) return refuse("block_kv", c.block_kv, "tiles of pages are powers of two");
    if (c.early_kb < 0 || c.early_kb > 1024) return refuse("early_kb", c.early_kb, "it must be from 0 to 1024");
    if (tile.head_dim % 8 || tile.head_dim_v % 8) return refuse("head_dim", tile.head_dim % 8 ? tile.head_dim : tile.head_dim_v, "aligned rows have a multiple of 8 columns");
    TILEWRIGHT_RETURN_IF_ERROR(
        check_limits(spec, arch, sm90_decode_threads(tile), sm90_decode_shared_bytes(tile), sm90_decode_register_estimate(tile), sm90_decode_register_limit(tile)));
    FamilyText text;
    if (wide) text.prelude = wgmma_prelude(spec, false);
    text.header = "arch/sm90_decode.h";
    text.type = "Sm90Decode<Config>";
    text.entry = entry_text(spec);
    text.threads = sm90_decode_threads(tile);
    text.shared_bytes = sm90_decode_shared_bytes(tile);
    return text;
}

}  // namespace

Result<FamilyText> nvidia_text(const KernelSpec& spec, const Arch& arch) {
    if (spec.kind == KernelKind::append) return plain_text(spec, "arch/nvidia_append.h", "NvidiaAppend<Config>", kernel::append_threads);
    constexpr int64_t largest_head_dim = 256;
    for (int64_t dim : {spec.problem.head_dim, spec.problem.head_dim_v})
        if (dim > largest_head_dim) return refuse("head_dim", dim, "NVIDIA's kernels take head dimensions up to " + std::to_string(largest_head_dim));
    if (spec.kind == KernelKind::attention_decode) {
        if (arch.family == Family::sm90 && kernel::takes_tensor_maps((int)size_of(spec.problem.dtype), spec.aligned)) return sm90_decode_text(spec, arch);
        if (spec.config.persistent) return refuse("persistent", 1, "a block decodes one unit: it must be 0");
        return sm80_text(spec, arch);
    }
    if (is_backward(spec.kind)) return nvidia::backward_text(spec, arch);
    // By the warps of sm_80 everywhere: what waits for the copy engine needs all tiles of keys.
    if (spec.kind == KernelKind::attention_materialized) return sm80_text(spec, arch);
    if (spec.kind != KernelKind::attention_forward) return Status(StatusCode::unsupported, std::string(name(spec.kind)) + " has no NVIDIA kernel");
    bool maps = arch.family == Family::sm90 && kernel::takes_tensor_maps((int)size_of(spec.problem.dtype), spec.aligned);
    return maps ? sm90_text(spec, arch) : sm80_text(spec, arch);
}

}  // namespace tilewright
