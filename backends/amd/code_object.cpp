// Reads ELF and its AMDGPU note.
#include "backends/amd/code_object.h"

#include <elf.h>

#include <cstring>
#include <nlohmann/json.hpp>

namespace tilewright::amd {
namespace {

constexpr int machine_amdgpu = 224;                  // EM_AMDGPU; older elf.h do not know it
constexpr uint32_t note_metadata = 32;               // NT_AMDGPU_METADATA
constexpr std::string_view note_owner("AMDGPU", 7);  // with its zero

Status broken(const std::string& what) { return invalid_argument("not an AMD code object: " + what); }

// The `count` bytes at `offset`, or nothing if they are not all there.
std::string_view slice(std::string_view bytes, uint64_t offset, uint64_t count) {
    return offset <= bytes.size() && count <= bytes.size() - offset ? bytes.substr(offset, count) : std::string_view();
}

template <class T>
bool read_at(std::string_view bytes, uint64_t offset, T& into) {
    std::string_view part = slice(bytes, offset, sizeof(T));
    if (part.empty()) return false;
    memcpy(&into, part.data(), sizeof(T));
    return true;
}

struct Sections {
    std::vector<Elf64_Shdr> headers;
    std::string_view bytes;
    std::string_view contents(const Elf64_Shdr& header) const { return header.sh_type == SHT_NOBITS ? "" : slice(bytes, header.sh_offset, header.sh_size); }
};

Result<Sections> read_sections(std::string_view bytes) {
    Elf64_Ehdr header;
    if (!read_at(bytes, 0, header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return broken("it does not begin as an ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) return broken("it is no 64-bit little-endian ELF file");
    if (header.e_machine != machine_amdgpu) return broken("its machine is " + std::to_string(header.e_machine) + ", not " + std::to_string(machine_amdgpu));
    Sections sections{{}, bytes};
    for (uint64_t i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section;
        if (header.e_shoff > bytes.size() || !read_at(bytes, header.e_shoff + i * sizeof section, section)) return broken("its section table is cut off");
        sections.headers.push_back(section);
    }
    return sections;
}

// The msgpack text of the metadata note; empty if there is none.
std::string_view find_metadata(const Sections& sections) {
    auto padded = [](uint64_t size) { return (size + 3) & ~uint64_t{3}; };
    for (const Elf64_Shdr& header : sections.headers) {
        if (header.sh_type != SHT_NOTE) continue;
        std::string_view notes = sections.contents(header);
        Elf64_Nhdr note;
        for (uint64_t at = 0; read_at(notes, at, note);) {
            std::string_view owner = slice(notes, at + sizeof note, note.n_namesz);
            uint64_t text = at + sizeof note + padded(note.n_namesz);
            if (note.n_type == note_metadata && owner == note_owner) return slice(notes, text, note.n_descsz);
            at = text + padded(note.n_descsz);
        }
    }
    return {};
}

std::string_view find_code(const Sections& sections, std::string_view name) {
    for (const Elf64_Shdr& table : sections.headers) {
        if (table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) continue;
        if (table.sh_link >= sections.headers.size()) continue;
        std::string_view symbols = sections.contents(table), names = sections.contents(sections.headers[table.sh_link]);
        Elf64_Sym symbol;
        for (uint64_t at = 0; read_at(symbols, at, symbol); at += sizeof symbol) {
            if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx >= sections.headers.size()) continue;
            if (slice(names, symbol.st_name, name.size() + 1) != std::string(name) + '\0') continue;
            const Elf64_Shdr& home = sections.headers[symbol.st_shndx];
            return slice(sections.contents(home), symbol.st_value - home.sh_addr, symbol.st_size);
        }
    }
    return {};
}

using Json = nlohmann::json;

// A missing or mistyped field reads as zero or empty: not every version of the metadata has all of them.
int64_t integer(const Json& from, const char* key) {
    auto field = from.find(key);
    return field != from.end() && field->is_number_integer() ? field->get<int64_t>() : 0;
}
std::string text(const Json& from, const char* key) {
    auto field = from.find(key);
    return field != from.end() && field->is_string() ? field->get<std::string>() : "";
}

KernelCode read_kernel(const Json& from) {
    KernelCode kernel;
    kernel.name = text(from, ".name");
    kernel.symbol = text(from, ".symbol");
    kernel.vector_registers = static_cast<int>(integer(from, ".vgpr_count"));
    kernel.accumulation_registers = static_cast<int>(integer(from, ".agpr_count"));
    kernel.scalar_registers = static_cast<int>(integer(from, ".sgpr_count"));
    kernel.group_bytes = integer(from, ".group_segment_fixed_size");
    kernel.private_bytes = integer(from, ".private_segment_fixed_size");
    kernel.vector_spills = static_cast<int>(integer(from, ".vgpr_spill_count"));
    kernel.scalar_spills = static_cast<int>(integer(from, ".sgpr_spill_count"));
    kernel.wave_size = static_cast<int>(integer(from, ".wavefront_size"));
    kernel.argument_bytes = integer(from, ".kernarg_segment_size");
    kernel.argument_alignment = integer(from, ".kernarg_segment_align");
    kernel.max_threads = static_cast<int>(integer(from, ".max_flat_workgroup_size"));
    if (auto arguments = from.find(".args"); arguments != from.end() && arguments->is_array())
        for (const Json& argument : *arguments)
            if (argument.is_object()) kernel.arguments.push_back({integer(argument, ".offset"), integer(argument, ".size"), text(argument, ".value_kind")});
    return kernel;
}

// "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-" -> "gfx90a"
std::string arch_of(std::string_view target) {
    target = target.substr(0, target.find(':'));
    size_t dash = target.rfind('-');
    return std::string(dash == target.npos ? target : target.substr(dash + 1));
}

}  // namespace

Result<ParsedObject> read_code_object(std::string_view bytes) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Sections sections, read_sections(bytes));
    std::string_view metadata = find_metadata(sections);
    if (metadata.empty()) return broken("it has no metadata note");
    Json all = Json::from_msgpack(metadata, true, false);
    auto kernels = all.is_object() ? all.find("amdhsa.kernels") : all.end();
    if (!all.is_object() || kernels == all.end() || !kernels->is_array()) return broken("its metadata lists no kernels");
    ParsedObject object;
    object.target = text(all, "amdhsa.target");
    object.arch = arch_of(object.target);
    for (const Json& kernel : *kernels) {
        if (!kernel.is_object()) return broken("its metadata is malformed");
        object.kernels.push_back(read_kernel(kernel));
        object.kernels.back().code = find_code(sections, object.kernels.back().name);
        if (object.kernels.back().code.empty()) return broken("it has no code for kernel '" + object.kernels.back().name + "'");
    }
    return object;
}

Result<std::string_view> unbundle(std::string_view bytes, std::string_view arch) {
    constexpr std::string_view magic = "__CLANG_OFFLOAD_BUNDLE__";
    if (!bytes.starts_with(magic)) return bytes;
    uint64_t count = 0, at = magic.size();
    if (!read_at(bytes, at, count)) return broken("its bundle is cut off");
    at += sizeof count;
    for (uint64_t i = 0; i < count; ++i) {
        struct {
            uint64_t offset, size, name_size;
        } entry;
        if (!read_at(bytes, at, entry)) return broken("its bundle is cut off");
        std::string_view id = slice(bytes, at + sizeof entry, entry.name_size), object = slice(bytes, entry.offset, entry.size);
        if (id.size() != entry.name_size || object.size() != entry.size) return broken("its bundle is cut off");
        if (id.starts_with("hip") && arch_of(id) == arch) return object;
        at += sizeof entry + entry.name_size;
    }
    return Status(StatusCode::not_found, "the bundle holds no code for " + std::string(arch));
}

}  // namespace tilewright::amd
