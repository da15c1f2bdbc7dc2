// The CPU's part of a kernel's text.
#include "backends/cpu/cpu_features.h"
#include "backends/family_text.h"
#include "kernels/resources_cpu.h"

namespace tilewright {

Result<FamilyText> cpu_text(const KernelSpec& spec, const Arch&) {
    const CpuFeatures& features = cpu_features();
    const Config& config = spec.config;
    bool dot16 = config.dot16 != 0;
    if (dot16 && !(features.bf16_dot && spec.problem.dtype == DType::bf16))
        return Status(StatusCode::unsupported, std::string("dot16 is 1; this processor has ") +
                                                   (features.bf16_dot ? "bf16 dot products only, and the problem is " : "no 16-bit dot products for ") +
                                                   name(spec.problem.dtype));
    int multiple = features.vector_floats * (dot16 ? 2 : 1);
    if (config.block_kv % multiple != 0)
        return Status(StatusCode::unsupported,
                      "block_kv is " + std::to_string(config.block_kv) + "; on this processor it must be a multiple of " + std::to_string(multiple));
    if (spec.kind == KernelKind::attention_materialized && config.packs_heads)
        return Status(StatusCode::unsupported, "attention_materialized works on one query head at a time: packs_heads must be 0");
    if (config.stages != 1 || config.workers != 1 || config.blocks != 1 || config.turns != 0 || config.persistent != 0)
        return Status(StatusCode::unsupported, "the CPU has one worker and nothing in flight: stages, workers and blocks must be 1, turns and persistent 0");
    FamilyText text;
    text.prelude = "constexpr int vector_floats = " + std::to_string(features.vector_floats) + ";\n";
    text.header = "arch/cpu.h";
    text.type = "Cpu<Config>";
    text.entry = "extern \"C\" __attribute__((visibility(\"default\"))) void " + std::string(name(spec.kind)) +
                 "(const Arch::Arguments* arguments, char* scratch) {\n    " + name(spec.kind) + "<Arch>(*arguments, scratch);\n}\n";
    text.shared_bytes = kernel::cpu_scratch(static_cast<int>(spec.problem.head_dim), static_cast<int>(spec.problem.head_dim_v), config.block_q, config.block_kv,
                                            features.vector_floats, dot16)
                            .bytes();
    return text;
}

}  // namespace tilewright
