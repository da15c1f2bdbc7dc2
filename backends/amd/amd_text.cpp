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
    const char* header;
    const char* type;
};

FamilyNames names_of(const Arch& arch) {
    if (arch.name == "gfx950") return {AmdFamily::cdna, "arch/cdna4.h", "Cdna4<Config>"};  // deeper matrix instructions
    Family family = arch.family;
    if (family == Family::rdna3) return {AmdFamily::rdna3, "arch/rdna3.h", "Rdna3<Config>"};
    if (family == Family::rdna4) return {AmdFamily::rdna4, "arch/rdna4.h", "Rdna4<Config>"};
    return {AmdFamily::cdna, "arch/cdna.h", "Cdna<Config>"};
}

Status refuse(const std::string& what, int64_t value, const std::string& limit) {
    return {StatusCode::unsupported, what + " is " + std::to_string(value) + "; " + limit};
}

// As many waves of a SIMD as can each have all the registers that an instruction can name: 5 on RDNA, where asking for fewer makes
// the compiler hoist until it spills.
int free_waves(const Arch& arch) {
    int64_t registers = arch.registers_per_unit / arch.simds_per_unit / arch.warp_size;
    int waves = 1;
    while (registers / (waves + 1) / arch.register_granularity * arch.register_granularity >= arch.max_registers_per_thread) ++waves;
    return waves;
}

// No HIP header is needed for this, and it means the same with one. LDS is static, so that the code object itself says how
// much a block takes, and anything that can load it can launch it.
std::string entry_text(const KernelSpec& spec, const Arch& arch) {
    std::string kind = name(spec.kind), waves = std::to_string(std::max(spec.config.blocks, free_waves(arch)));
    return "extern \"C\" __attribute__((global, amdgpu_flat_work_group_size(Arch::threads, Arch::threads), amdgpu_waves_per_eu(" + waves + "))) void " + kind +
           "(Arch::Arguments arguments) {\n    __attribute__((shared, aligned(16))) static char shared[Arch::shared_bytes];\n    " + kind +
           "<Arch>(arguments, shared);\n}\n";
}

}  // namespace

Result<FamilyText> amd_text(const KernelSpec& spec, const Arch& arch) {
    const Config& c = spec.config;
    if (spec.kind == KernelKind::append) {
        FamilyText text;
        text.header = "arch/amd_append.h", text.type = "AmdAppend<Config>", text.entry = entry_text(spec, arch), text.threads = kernel::append_threads;
        return text;
    }
    bool decodes = spec.kind == KernelKind::attention_decode;
    if (decodes && spec.problem.bias) return Status(StatusCode::unsupported, "decoding on AMD takes no bias: " + to_text(spec.problem));
    if (spec.kind != KernelKind::attention_forward && !decodes) return Status(StatusCode::unsupported, std::string(name(spec.kind)) + " has no AMD kernel");
    if (spec.problem.dtype == DType::fp32) return Status(StatusCode::unsupported, "AMD kernels are for fp16 and bf16, not fp32");
    if (c.persistent) return refuse("persistent", c.persistent, "AMD's blocks do one tile each: it must be 0");

    FamilyNames names = names_of(arch);
    AmdShape shape{c.block_q, c.block_kv, c.stages, c.workers, static_cast<int>(spec.problem.head_dim), static_cast<int>(spec.problem.head_dim_v)};
    if (const char* restriction = amd_restriction(names.family, shape)) return Status(StatusCode::unsupported, restriction);
    AmdResources needs = amd_resources(names.family, shape);
    if (needs.threads > arch.max_threads_per_block)
        return refuse("threads of a block", needs.threads, arch.name + " allows " + std::to_string(arch.max_threads_per_block));
    if (needs.shared_bytes > arch.shared_bytes_per_block)
        return refuse("shared bytes of a block", needs.shared_bytes, arch.name + " allows " + std::to_string(arch.shared_bytes_per_block));
    int most_waves = arch.max_warps_per_unit / arch.simds_per_unit;
    if (c.blocks > most_waves) return refuse("blocks", c.blocks, "a SIMD of " + arch.name + " holds " + std::to_string(most_waves) + " waves");

    FamilyText text;
    text.header = names.header;
    text.type = names.type;
    if (decodes) text.base_header = names.header, text.header = "arch/amd_decode.h", text.type = "AmdDecode<" + text.type + ">";
    text.entry = entry_text(spec, arch);
    text.threads = needs.threads;
    return text;
}

}  // namespace tilewright
