// The CPU's part of a kernel's text.
#include "backends/cpu/cpu_features.h"
#include "backends/family_text.h"
#include "kernels/parameters.h"
#include "kernels/resources_cpu.h"

namespace tilewright {
namespace {

std::string entry_text(const KernelSpec& spec) {
    std::string kind = name(spec.kind);
    return "extern \"C\" __attribute__((visibility(\"default\"))) void " + kind + "(const Arch::Arguments* arguments, char* scratch) {\n    " + kind +
           "<Arch>(*arguments, scratch);\n}\n";
}

Status refuse_multiple(const char* field, int value, int multiple) {
    return {StatusCode::unsupported, std::string(field) + " is " + std::to_string(value) + "; on this processor it must be a multiple of " + std::to_string(multiple)};
}

Result<FamilyText> decode_text(const KernelSpec& spec, int vector_floats) {
    const Config& config = spec.config;
    if (config.block_q > 2 && config.block_q % 4)
        return Status(StatusCode::unsupported, "block_q is " + std::to_string(config.block_q) + "; for decoding on the CPU it must be 1, 2 or a multiple of 4");
    if (config.dot16) return Status(StatusCode::unsupported, "dot16 is 1; decoding multiplies floats: it must be 0");
    if (config.overlapped) return Status(StatusCode::unsupported, "overlapped is 1; decoding on the CPU has nothing to overlap with: it must be 0");
    FamilyText text;
    text.header = "arch/cpu_decode.h";
    text.type = "CpuDecode<Config>";
    text.shared_bytes = kernel::cpu_decode_scratch_bytes(static_cast<int>(spec.problem.head_dim), config.block_q, vector_floats);
    return text;
}

Result<FamilyText> backward_text(const KernelSpec& spec, int vector_floats) {
    const Config& config = spec.config;
    if (config.dot16) return Status(StatusCode::unsupported, "dot16 is 1; the backward multiplies floats: it must be 0");
    if (config.dq == 1) return Status(StatusCode::unsupported, "dq is 1; on the CPU it must be 0 or 2: threads add to the gradient of the queries in a fixed order");
    if (config.block_q % vector_floats) return refuse_multiple("block_q", config.block_q, vector_floats);
    if (config.dq && config.block_q < kernel::backward_least_block_q)
        return Status(StatusCode::unsupported, "block_q is " + std::to_string(config.block_q) + "; with dq 2 it must be at least " + std::to_string(kernel::backward_least_block_q));
    if (kernel::backward_query_block % config.block_q)
        return Status(StatusCode::unsupported, "block_q is " + std::to_string(config.block_q) + "; the backward's must divide " + std::to_string(kernel::backward_query_block));
    FamilyText text;
    text.header = "arch/cpu_backward.h";
    text.type = "CpuBackward<Config>";
    bool over_keys = is_over_keys(spec.kind);
    int rows = over_keys ? config.block_kv : config.block_q, columns = over_keys ? config.block_q : config.block_kv;
    text.shared_bytes = kernel::cpu_backward_scratch(static_cast<int>(spec.problem.head_dim), static_cast<int>(spec.problem.head_dim_v), rows, columns, vector_floats, over_keys && config.dq).bytes;
    return text;
}

}  // namespace

Result<FamilyText> cpu_text(const KernelSpec& spec, const Arch&) {
    const CpuFeatures& features = cpu_features();
    const Config& config = spec.config;
    if (spec.kind == KernelKind::append) {
        FamilyText text;
        text.header = "arch/cpu_append.h", text.type = "CpuAppend<Config>", text.entry = entry_text(spec);
        return text;
    }
    bool dot16 = config.dot16 != 0;
    if (dot16 && !(features.bf16_dot && spec.problem.dtype == DType::bf16))
        return Status(StatusCode::unsupported, std::string("dot16 is 1; this processor has ") +
                                                   (features.bf16_dot ? "bf16 dot products only, and the problem is " : "no 16-bit dot products for ") +
                                                   name(spec.problem.dtype));
    int multiple = features.vector_floats * (dot16 ? 2 : 1);
    if (config.block_kv % multiple != 0)
        return refuse_multiple("block_kv", config.block_kv, multiple);
    if (spec.kind == KernelKind::attention_materialized && config.packs_heads)
        return Status(StatusCode::unsupported, "attention_materialized works on one query head at a time: packs_heads must be 0");
    if (config.stages != 1 || config.workers != 1 || config.blocks != 1 || config.turns != 0 || config.persistent != 0)
        return Status(StatusCode::unsupported, "the CPU has one worker and nothing in flight: stages, workers and blocks must be 1, turns and persistent 0");
    FamilyText text;
    if (spec.kind == KernelKind::attention_decode) {
        TILEWRIGHT_ASSIGN_OR_RETURN(text, decode_text(spec, features.vector_floats));
    } else if (is_backward(spec.kind)) {
        TILEWRIGHT_ASSIGN_OR_RETURN(text, backward_text(spec, features.vector_floats));
    } else {
        text.header = "arch/cpu.h";
        text.type = "Cpu<Config>";
        text.shared_bytes = kernel::cpu_scratch(static_cast<int>(spec.problem.head_dim), static_cast<int>(spec.problem.head_dim_v), config.block_q, config.block_kv,
                                            features.vector_floats, dot16)
                                .bytes();
    }
    text.prelude = "constexpr int vector_floats = " + std::to_string(features.vector_floats) + ";\n";
    text.entry = entry_text(spec);
    return text;
}

}  // namespace tilewright
