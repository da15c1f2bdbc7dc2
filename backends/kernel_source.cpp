// Writes the one text that a compiler gets: the device headers in order of use, the config as constants, the entry point.
#include "backends/kernel_source.h"

#include <set>
#include <string_view>

#include "backends/embedded_kernels.h"
#include "backends/family_text.h"

namespace tilewright {
namespace {

const char* embedded_text(std::string_view path) {
    for (const EmbeddedFile* file = embedded_kernels; file->path; ++file)
        if (path == file->path) return file->text;
    return nullptr;
}

// `base` is the folder of the including file; paths in kernels/ use at most a leading "../".
std::string resolve(std::string_view base, std::string_view relative) {
    while (relative.starts_with("../")) {
        relative.remove_prefix(3);
        size_t slash = base.substr(0, base.empty() ? 0 : base.size() - 1).rfind('/');
        base = slash == base.npos ? std::string_view() : base.substr(0, slash + 1);
    }
    return std::string(base) + std::string(relative);
}

// Appends a header after everything that it includes, each once.
Status append_header(const std::string& path, std::set<std::string>& included, std::string& text) {
    if (!included.insert(path).second) return {};
    const char* contents = embedded_text(path);
    if (!contents) return {StatusCode::internal, "kernels/" + path + " is included but not embedded"};
    size_t slash = path.rfind('/');
    std::string_view base = slash == path.npos ? std::string_view() : std::string_view(path).substr(0, slash + 1), rest = contents;
    std::string own;
    while (!rest.empty()) {
        size_t end = std::min(rest.find('\n'), rest.size());
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        constexpr std::string_view include = "#include \"";
        if (line.starts_with(include)) {
            std::string_view name = line.substr(include.size());
            TILEWRIGHT_RETURN_IF_ERROR(append_header(resolve(base, name.substr(0, name.find('"'))), included, text));
            own += '\n';
        } else if (line.starts_with("#pragma once")) {
            own += '\n';
        } else {
            own.append(line) += '\n';
        }
    }
    text += "#line 1 \"kernels/" + path + "\"\n" + own;
    return {};
}

const char* mask_of(const Problem& problem) {
    if (problem.causal()) return "causal";
    return problem.window_left != -1 || problem.window_right != -1 ? "window" : "none";
}

std::string config_text(const KernelSpec& spec, const Arch& arch) {
    std::string text = "struct Config {\n    using Element = " + std::string(name(spec.problem.dtype)) + ";\n";
    auto integer = [&](const char* field, int64_t value) { text += "    static constexpr int " + std::string(field) + " = " + std::to_string(value) + ";\n"; };
    auto boolean = [&](const char* field, bool value) {
        text += "    static constexpr bool " + std::string(field) + " = " + (value ? "true" : "false") + ";\n";
    };
    for (const ConfigField& field : config_fields()) integer(field.name, spec.config.*field.member);
    integer("dies", arch.dies);
    integer("head_dim", spec.problem.head_dim), integer("head_dim_v", spec.problem.head_dim_v);
    text += "    static constexpr Mask mask = Mask::" + std::string(mask_of(spec.problem)) + ";\n";
    boolean("softcap", spec.problem.softcap), boolean("bias", spec.problem.bias), boolean("alibi", spec.problem.alibi), boolean("sink", spec.problem.sink);
    boolean("rescaled", spec.rescaled), boolean("aligned", spec.aligned), boolean("paged", spec.paged), boolean("packed", spec.problem.packed);
    if (is_backward(spec.kind)) {
        boolean("over_keys", is_over_keys(spec.kind)), boolean("gives_scored", gives_scored(spec.kind));
        boolean("gives_carried", gives_carried(spec.kind)), boolean("gives_bias", gives_bias(spec.kind));
    }
    return text + "};\n";
}

Status check_config(const Config& config) {
    struct Range {
        const char* field;
        int value, least, most;
    };
    for (const Range& range : {Range{"block_q", config.block_q, 1, 1024}, Range{"block_kv", config.block_kv, 1, 1024}, Range{"stages", config.stages, 1, 8},
                               Range{"workers", config.workers, 1, 32}, Range{"blocks", config.blocks, 1, 16}, Range{"slack", config.slack, 0, 8}, Range{"dq", config.dq, 0, 2}})
        if (range.value < range.least || range.value > range.most)
            return {StatusCode::unsupported, std::string(range.field) + " is " + std::to_string(range.value) + "; it must be from " +
                                                 std::to_string(range.least) + " to " + std::to_string(range.most)};
    return {};
}

const char* header_of(KernelKind kind) {
    switch (kind) {
#define TILEWRIGHT_KERNEL(name, header, summary) \
    case KernelKind::name:                       \
        return header;
#include "kernels/kernels.inc"
#undef TILEWRIGHT_KERNEL
    }
    return "";
}

}  // namespace

Status refuse(const std::string& what, int64_t value, const std::string& limit) {
    return {StatusCode::unsupported, what + " is " + std::to_string(value) + "; " + limit};
}

Result<FamilyText> family_text(const KernelSpec& spec, const Arch& arch) {
    if (spec.problem.packed && spec.kind != KernelKind::attention_forward && !is_backward(spec.kind))
        return Status(StatusCode::unsupported, std::string(name(spec.kind)) + " takes no packed sequences");
    if (spec.problem.packed && spec.problem.bias) return Status(StatusCode::unsupported, "packed sequences take no bias: " + to_text(spec.problem));
    const Config& c = spec.config;
    if (spec.kind == KernelKind::attention_materialized && arch.family != Family::cpu && (c.packs_heads || c.overlapped))
        return refuse(c.packs_heads ? "packs_heads" : "overlapped", 1, "attention_materialized does one head and one product at a time: it must be 0");
    switch (arch.family) {
        case Family::cpu:
            return cpu_text(spec, arch);
        case Family::sm80:
        case Family::sm90:
            return nvidia_text(spec, arch);
        case Family::cdna:
        case Family::rdna3:
        case Family::rdna4:
            return amd_text(spec, arch);
    }
    return Status(StatusCode::internal, "unknown family");
}

Result<KernelSource> generate(const KernelSpec& spec, const Arch& arch) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(spec.problem));
    TILEWRIGHT_RETURN_IF_ERROR(check_config(spec.config));
    if (spec.config.dq && !is_backward(spec.kind)) return Status(StatusCode::unsupported, "dq is " + std::to_string(spec.config.dq) + "; only a backward has it: it must be 0");
    TILEWRIGHT_ASSIGN_OR_RETURN(FamilyText family, family_text(spec, arch));
    KernelSource source;
    std::set<std::string> included;
    TILEWRIGHT_RETURN_IF_ERROR(append_header("tile/element.h", included, source.text));
    source.text += "#line 1 \"prelude\"\nnamespace tilewright::kernel {\n" + family.prelude + "}  // namespace tilewright::kernel\n";
    if (!family.base_header.empty()) TILEWRIGHT_RETURN_IF_ERROR(append_header(family.base_header, included, source.text));
    TILEWRIGHT_RETURN_IF_ERROR(append_header(family.header, included, source.text));
    TILEWRIGHT_RETURN_IF_ERROR(append_header(header_of(spec.kind), included, source.text));
    source.text += "#line 1 \"" + std::string(name(spec.kind)) + "\"\nnamespace tilewright::kernel {\n" + config_text(spec, arch) + "using Arch = " + family.type +
                   ";\n" + family.entry + "}  // namespace tilewright::kernel\n";
    source.entry = name(spec.kind);
    source.threads = family.threads;
    source.shared_bytes = family.shared_bytes;
    return source;
}

}  // namespace tilewright
