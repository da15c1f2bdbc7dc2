// Reads the ELF sections of a cubin; every offset is checked against the file's size.
#include "backends/nvidia/cubin.h"

#include <elf.h>

#include <cstring>
#include <optional>

namespace tilewright::nvidia {
namespace {

// Attributes of .nv.info sections: a byte for the format, a byte for the attribute, two bytes of value or size.
enum : int { format_sized = 4, attribute_frame = 0x11, attribute_parameter = 0x17, attribute_registers = 0x2f };
constexpr int elf_machine_cuda = 190;
constexpr int64_t shared_reserved_in_section = 1024;  // sm_90 and later: counted in .nv.shared.*, not the kernel's own

// A T at `offset`, if it lies inside.
template <class T>
std::optional<T> read(std::string_view bytes, uint64_t offset) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

struct Section {
    std::string_view name;
    std::string_view bytes;  // empty where the file holds none (SHT_NOBITS)
    uint64_t size = 0;
};

struct File {
    std::vector<Section> sections;
    std::string_view symbols, names;  // .symtab and .strtab
    int sm = 0;                       // 80, 90

    const Section* find(std::string_view name) const {
        for (const Section& section : sections)
            if (section.name == name) return &section;
        return nullptr;
    }
    const Section* find(const char* prefix, std::string_view kernel) const { return find(prefix + std::string(kernel)); }
    std::string_view symbol(uint32_t index) const;
};

// The text that starts at `offset` of a string table.
std::string_view text_at(std::string_view table, uint64_t offset) {
    if (offset >= table.size()) return {};
    std::string_view rest = table.substr(offset);
    return rest.substr(0, rest.find('\0'));
}

std::string_view File::symbol(uint32_t index) const {
    auto entry = read<Elf64_Sym>(symbols, uint64_t{index} * sizeof(Elf64_Sym));
    return entry ? text_at(names, entry->st_name) : std::string_view();
}

Status broken(const std::string& what) { return invalid_argument("not a complete cubin: " + what); }

// The architecture's number moved within e_flags with the ABI of CUDA 13: bits 8 to 15 there, bits 0 to 7 before.
int sm_of(const Elf64_Ehdr& header) { return header.e_ident[EI_ABIVERSION] >= 8 ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff; }

Result<File> read_sections(std::string_view bytes) {
    auto header = read<Elf64_Ehdr>(bytes, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) return broken("no 64-bit ELF header");
    if (header->e_machine != elf_machine_cuda) return broken("ELF machine " + std::to_string(header->e_machine) + " instead of 190");
    File file;
    file.sm = sm_of(*header);
    if (file.sm < 80) return broken("machine code for sm_" + std::to_string(file.sm) + "; sm_80 or later is wanted");
    std::vector<Elf64_Shdr> headers;
    for (int i = 0; i < header->e_shnum; ++i) {
        auto section = read<Elf64_Shdr>(bytes, header->e_shoff + uint64_t{sizeof(Elf64_Shdr)} * i);
        if (!section) return broken("section header " + std::to_string(i) + " lies outside of its " + std::to_string(bytes.size()) + " bytes");
        headers.push_back(*section);
    }
    auto contents = [&](const Elf64_Shdr& section) { return section.sh_type == SHT_NOBITS ? std::string_view() : bytes.substr(section.sh_offset, section.sh_size); };
    for (const Elf64_Shdr& section : headers)
        if (section.sh_type != SHT_NOBITS && (section.sh_offset > bytes.size() || bytes.size() - section.sh_offset < section.sh_size))
            return broken("a section lies outside of its " + std::to_string(bytes.size()) + " bytes");
    if (header->e_shstrndx >= headers.size()) return broken("no section names");
    std::string_view section_names = contents(headers[header->e_shstrndx]);
    for (const Elf64_Shdr& section : headers) {
        file.sections.push_back({text_at(section_names, section.sh_name), contents(section), section.sh_size});
        if (section.sh_type != SHT_SYMTAB) continue;
        file.symbols = contents(section);
        if (section.sh_link < headers.size()) file.names = contents(headers[section.sh_link]);
    }
    return file;
}

// Calls visit(attribute, payload) for each attribute that has a payload.
template <class Visit>
Status for_each_attribute(std::string_view info, Visit visit) {
    for (size_t offset = 0; offset + 4 <= info.size();) {
        int format = (unsigned char)info[offset], attribute = (unsigned char)info[offset + 1];
        size_t size = format == format_sized ? *read<uint16_t>(info, offset + 2) : 0;
        offset += 4;
        if (size > info.size() - offset) return broken("attribute " + std::to_string(attribute) + " is longer than its section");
        if (size > 0) visit(attribute, info.substr(offset, size));
        offset += size;
    }
    return {};
}

void count_instructions(std::string_view code, CubinKernel& kernel) {
    std::span<const Opcode> table = opcodes();
    std::vector<int> counts(table.size());
    for (uint64_t offset = 0; offset + 16 <= code.size(); offset += 16) {
        int bits = *read<uint16_t>(code, offset) & 0x1ff;
        for (size_t i = 0; i < table.size(); ++i) counts[i] += table[i].bits == bits;
    }
    for (size_t i = 0; i < table.size(); ++i)
        if (counts[i]) kernel.instructions.push_back({table[i].name, counts[i]});
}

Result<CubinKernel> read_kernel(const File& file, std::string_view name, std::string_view code) {
    CubinKernel kernel;
    kernel.name = name;
    const Section* all = file.find(".nv.info");
    const Section* own = file.find(".nv.info.", name);
    if (!all || !own) return broken("no .nv.info for " + kernel.name);
    bool counted = false;
    TILEWRIGHT_RETURN_IF_ERROR(for_each_attribute(all->bytes, [&](int attribute, std::string_view payload) {  // (symbol, value) pairs
        auto symbol = read<uint32_t>(payload, 0), value = read<uint32_t>(payload, 4);
        if (!symbol || !value || file.symbol(*symbol) != name) return;
        if (attribute == attribute_registers) kernel.registers = *value, counted = true;
        if (attribute == attribute_frame) kernel.local_bytes = *value;
    }));
    if (!counted) return broken("no register count for " + kernel.name);
    TILEWRIGHT_RETURN_IF_ERROR(for_each_attribute(own->bytes, [&](int attribute, std::string_view payload) {  // one parameter: its index, place, and from bit 18 of a third word on its size
        if (auto word = read<uint32_t>(payload, 8); word && attribute == attribute_parameter) kernel.parameter_bytes += *word >> 18;
    }));
    if (const Section* shared = file.find(".nv.shared.", name)) {
        kernel.shared_bytes = shared->size;
        if (file.sm >= 90 && kernel.shared_bytes >= shared_reserved_in_section) kernel.shared_bytes -= shared_reserved_in_section;
    }
    count_instructions(code, kernel);
    return kernel;
}

}  // namespace

Result<std::vector<CubinKernel>> read_cubin(std::string_view bytes) {
    TILEWRIGHT_ASSIGN_OR_RETURN(File file, read_sections(bytes));
    std::vector<CubinKernel> kernels;
    for (const Section& section : file.sections) {
        constexpr std::string_view prefix = ".text.";
        if (!section.name.starts_with(prefix) || !file.find(".nv.info.", section.name.substr(prefix.size()))) continue;
        TILEWRIGHT_ASSIGN_OR_RETURN(CubinKernel kernel, read_kernel(file, section.name.substr(prefix.size()), section.bytes));
        kernels.push_back(std::move(kernel));
    }
    if (kernels.empty()) return broken("it holds no kernel");
    return kernels;
}

}  // namespace tilewright::nvidia
