// What AMD's families add to the text of a kernel: the arch header, the entry point; and what they cannot run.
#include <algorithm>

#include "backends/family_text.h"
#include "kernels/parameters.h"
#include "kernels/resources_amd.h"

namespace tilewright {
namespace {

using kernel::AmdFamily;
using kernel::AmdResources;
using kernel::AmdShape;

struct FamilyNames {
    AmdFamily family;
    std::string header, type;  // the type without its <Config>
};

FamilyNames names_of(const Arch& arch) {
    if (arch.name == "gfx950") return {AmdFamily::cdna, "arch/cdna4.h", "Cdna4"};  // deeper matrix instructions
    Family family = arch.family;
    if (family == Family::rdna3) return {AmdFamily::rdna3, "arch/rdna3.h", "Rdna3"};
    if (family == Family::rdna4) return {AmdFamily::rdna4, "arch/rdna4.h", "Rdna4"};
    return {AmdFamily::cdna, "arch/cdna.h", "Cdna"};
}

// As many waves of a SIMD as can each have all the registers that an instruction can name: 5 on RDNA, where asking for fewer makes
// the compiler hoist until it spills.
int free_waves(const Arch& arch) {
    int64_t registers = arch.registers_per_unit / arch.simds_per_unit / arch.warp_size;
    int waves = 1;
    while (registers / (waves + 1) / arch.register_granularity * arch.register_granularity >= arch.max_registers_per_thread) ++waves;
    return waves;
}

// How the kernel comes by its arguments. Read from memory where they are needed: the copy that a parameter is would stay in scalar registers from the
// start to the end, and these then be spilled. Few are needed to append, and RDNA has room for a forward's, which it schedules better with the copy.
std::string arguments_text(const KernelSpec& spec, const Arch& arch) {
    bool copied = spec.kind == KernelKind::append || (spec.kind == KernelKind::attention_forward && arch.family != Family::cdna);
    return copied ? "arguments" : "(const Arch::Arguments&)*(const __attribute__((address_space(4))) Arch::Arguments*)__builtin_amdgcn_kernarg_segment_ptr()";
}

// No HIP header is needed for this, and it means the same with one. LDS is static, so that the code object itself says how
// much a block takes, and anything that can load it can launch it.
std::string entry_text(const KernelSpec& spec, const Arch& arch) {
    std::string kind = name(spec.kind), waves = std::to_string(std::max(spec.config.blocks, free_waves(arch)));
    return "extern \"C\" __attribute__((global, amdgpu_flat_work_group_size(Arch::threads, Arch::threads), amdgpu_waves_per_eu(" + waves + "))) void " + kind +
           "(Arch::Arguments arguments) {\n    __attribute__((shared, aligned(16))) static char shared[Arch::shared_bytes];\n    " + kind +
           "<Arch>(" + arguments_text(spec, arch) + ", shared);\n}\n";
}

Status check_limits(const Config& c, const Arch& arch, int threads, int64_t shared_bytes) {
    if (threads > arch.max_threads_per_block) return refuse("threads of a block", threads, arch.name + " allows " + std::to_string(arch.max_threads_per_block));
    if (shared_bytes > arch.shared_bytes_per_block) return refuse("shared bytes of a block", shared_bytes, arch.name + " allows " + std::to_string(arch.shared_bytes_per_block));
    int most_waves = arch.max_warps_per_unit / arch.simds_per_unit;
    if (c.blocks > most_waves) return refuse("blocks", c.blocks, "a SIMD of " + arch.name + " holds " + std::to_string(most_waves) + " waves");
    return {};
}

// The kernels that work row by row.
FamilyText backward_rows_text(const KernelSpec& spec, const Arch& arch) {
    FamilyText text;
    text.header = "arch/amd_backward_rows.h";
    text.type = "AmdBackwardRows<Config, " + std::to_string(arch.warp_size) + ">";
    text.entry = entry_text(spec, arch);
    text.threads = kernel::amd_backward_rows_threads;
    return text;
}

Result<FamilyText> backward_text(const KernelSpec& spec, const Arch& arch) {
    const Config& c = spec.config;
    const Problem& p = spec.problem;
    if (c.dq) return refuse("dq", c.dq, "it must be 0: the gradient of the queries has a pass of its own");
    if (spec.kind == KernelKind::attention_backward_prologue || spec.kind == KernelKind::attention_backward_sink) return backward_rows_text(spec, arch);
    FamilyNames names = names_of(arch);
    kernel::AmdBackwardShape shape{c.block_q, c.block_kv, c.workers, (int)p.head_dim, (int)p.head_dim_v, gives_scored(spec.kind), gives_carried(spec.kind), gives_bias(spec.kind)};
    if (is_over_keys(spec.kind)) std::swap(shape.rows, shape.columns);
    AmdResources needs[2];
    for (int i : {0, 1}) {
        AmdShape view = amd_backward_view(shape, i == 0 ? shape.scored_depth : shape.carried_depth);
        if (const char* restriction = amd_restriction(names.family, view))
            return Status(StatusCode::unsupported, std::string(restriction) + (is_over_keys(spec.kind) ? "; the backward's rows are keys here, and its columns queries" : ""));
        needs[i] = amd_resources(names.family, view);
    }
    if (c.stages > 2) return refuse("stages", c.stages, "it must be 1 or 2");
    if (kernel::backward_query_block % c.block_q) return refuse("block_q", c.block_q, "the backward's must divide " + std::to_string(kernel::backward_query_block));
    FamilyText text;
    text.static_shared_bytes = amd_backward_lds(needs[0], needs[1], shape).bytes;
    TILEWRIGHT_RETURN_IF_ERROR(check_limits(c, arch, needs[0].threads, text.static_shared_bytes));
    text.base_header = names.header;
    text.header = "arch/amd_backward.h";
    text.type = "AmdBackward<" + names.type + ", Config>";
    text.entry = entry_text(spec, arch);
    text.threads = needs[0].threads;
    return text;
}

}  // namespace

Result<FamilyText> amd_text(const KernelSpec& spec, const Arch& arch) {
    const Config& c = spec.config;
    constexpr int64_t largest_head_dim = 256;
    for (int64_t dim : {spec.problem.head_dim, spec.problem.head_dim_v})
        if (spec.kind != KernelKind::attention_decode && spec.kind != KernelKind::append && dim > largest_head_dim) return refuse("head_dim", dim, "AMD's kernels take head dimensions up to " + std::to_string(largest_head_dim) + "; those for decoding on CDNA more");
    const bool appends = spec.kind == KernelKind::append;
    if (spec.problem.dtype == DType::fp32 && !appends) return Status(StatusCode::unsupported, "AMD kernels are for fp16 and bf16, not fp32");
    if (is_backward(spec.kind)) return backward_text(spec, arch);
    if (appends) {
        FamilyText text;
        text.header = "arch/amd_append.h", text.type = "AmdAppend<Config>", text.entry = entry_text(spec, arch), text.threads = kernel::append_threads;
        return text;
    }
    bool decodes = spec.kind == KernelKind::attention_decode;
    if (decodes && spec.problem.bias) return Status(StatusCode::unsupported, "decoding on AMD takes no bias: " + to_text(spec.problem));
    bool materialized = spec.kind == KernelKind::attention_materialized;
    if (spec.kind != KernelKind::attention_forward && !decodes && !materialized) return Status(StatusCode::unsupported, std::string(name(spec.kind)) + " has no AMD kernel");
    if (c.persistent) return refuse("persistent", c.persistent, "AMD's blocks do one tile each: it must be 0");

    FamilyNames names = names_of(arch);
    AmdShape shape{c.block_q, c.block_kv, c.stages, c.workers, static_cast<int>(spec.problem.head_dim), static_cast<int>(spec.problem.head_dim_v)};
    if (const char* restriction = amd_restriction(names.family, shape)) return Status(StatusCode::unsupported, restriction);
    AmdResources needs = amd_resources(names.family, shape);
    TILEWRIGHT_RETURN_IF_ERROR(check_limits(c, arch, needs.threads, needs.shared_bytes));

    FamilyText text;
    text.header = names.header;
    text.type = names.type + "<Config>";
    if (decodes) text.base_header = names.header, text.header = "arch/amd_decode.h", text.type = "AmdDecode<" + text.type + ">";
    text.entry = entry_text(spec, arch);
    text.threads = needs.threads, text.static_shared_bytes = needs.shared_bytes;
    return text;
}

}  // namespace tilewright
