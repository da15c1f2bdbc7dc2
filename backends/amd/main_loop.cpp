// Finding the main loop in a disassembly, and two ways to weigh it.
#include "backends/amd/main_loop.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <vector>

#include "backends/amd/compiler.h"
#include "core/process.h"
#include "core/scratch_directory.h"

namespace tilewright::amd {
namespace {

struct Instruction {
    std::string_view text;  // mnemonic and operands
    uint64_t address = 0;
    std::optional<uint64_t> target;  // of a jump
};

bool is_matrix(std::string_view text) {
    for (const std::string_view prefix : {"v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_"})
        if (text.starts_with(prefix)) return true;
    return false;
}
bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
    return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

uint64_t hexadecimal(std::string_view text) {
    uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return value;
}

// "\ts_cbranch_scc1 150    // 000000002564: BF850096 <attention_forward+0x11c0>"; a jump's target is relative to its symbol.
std::vector<Instruction> parse(std::string_view disassembly) {
    std::vector<Instruction> list;
    uint64_t symbol = 0;
    while (!disassembly.empty()) {
        const std::string_view line = disassembly.substr(0, disassembly.find('\n'));
        disassembly.remove_prefix(std::min(disassembly.size(), line.size() + 1));
        const size_t comment = line.find("// ");
        if (comment == std::string_view::npos) {
            if (line.ends_with(">:")) symbol = hexadecimal(line.substr(0, line.find(' ')));
            continue;
        }
        Instruction instruction;
        instruction.text = line.substr(0, comment);
        const size_t first = instruction.text.find_first_not_of(" \t");
        if (first == std::string_view::npos) continue;
        instruction.text = instruction.text.substr(first, instruction.text.find_last_not_of(" \t") - first + 1);
        instruction.address = hexadecimal(line.substr(comment + 3));
        const size_t offset = line.rfind("+0x");
        if (starts_with_any(instruction.text, {"s_cbranch", "s_branch"}))
            instruction.target = symbol + (offset == std::string_view::npos ? 0 : hexadecimal(line.substr(offset + 3)));
        list.push_back(instruction);
    }
    return list;
}

// "v_mfma_f32_32x32x8_bf16 ..." is 2 * 32 * 32 * 8.
double matrix_flops(std::string_view text) {
    const size_t cross = text.find('x');
    if (cross == std::string_view::npos) return 0;
    size_t place = text.rfind('_', cross) + 1;
    double product = 2;
    while (place < text.size()) {
        unsigned extent = 0;
        const auto [end, error] = std::from_chars(text.data() + place, text.data() + text.size(), extent);
        if (error != std::errc()) break;
        product *= extent;
        place = static_cast<size_t>(end - text.data()) + 1;
        if (*end != 'x') break;
    }
    return product;
}

double matrix_flops_per_cycle(const Arch& arch) {  // of one SIMD
    return arch.matrix_tflops_16bit * 1e3 / (arch.units * arch.simds_per_unit * arch.clock_ghz);
}

// The tool of the compiler's own LLVM: beside clang++ as llvm-mca, beside clang++-19 as llvm-mca-19. With hipRTC, whichever is in PATH.
std::string tool(const std::string& name) {
    const std::string path = compiler().ok() ? compiler()->path : "", clang = "clang++";
    std::vector<std::string> candidates = {name + "-19", name + "-20", name + "-21"};
    if (const size_t place = path.rfind(clang); place != std::string::npos)
        candidates.insert(candidates.begin(), path.substr(0, place) + name + path.substr(place + clang.size()));
    for (const std::string& candidate : candidates)
        if (std::string found = find_program(candidate); !found.empty()) return found;
    return "";
}

// The number behind "Total Cycles:" or another label of llvm-mca's summary; negative: absent.
double number_after(const std::string& text, const std::string& label) {
    const size_t place = text.find(label);
    return place == std::string::npos ? -1 : std::atof(text.c_str() + place + label.size());
}

std::optional<MainLoop> by_llvm_mca(const std::string& loop, const Arch& arch) {
    constexpr int rounds = 8;
    const std::string program = tool("llvm-mca");
    const auto scratch = ScratchDirectory::create();
    if (program.empty() || !scratch.ok()) return std::nullopt;
    const std::string file = scratch->file("loop.s");
    if (!write_file(file, loop).ok()) return std::nullopt;
    const auto result = run_process({.arguments = {program, "-mtriple=amdgcn-amd-amdhsa", "-mcpu=" + arch.name, "-iterations=" + std::to_string(rounds), file}});
    // An architecture that it does not know is only warned of, and judged as some other.
    if (!result.ok() || !result->succeeded() || result->error.find("not a recognized processor") != std::string::npos) return std::nullopt;
    // LLVM counts CDNA's time in the four cycles that a wave of 64 needs for an instruction.
    const double unit = arch.family == Family::cdna ? 4 : 1;
    MainLoop measured;
    measured.cycles = unit * number_after(result->output, "Total Cycles:") / rounds;
    measured.busy_cycles = unit * number_after(result->output, "Block RThroughput:");
    measured.method = "llvm-mca";
    if (measured.cycles <= 0 || measured.busy_cycles <= 0) return std::nullopt;
    return measured;
}

// Matrix instructions and the others run side by side where there are several waves.
MainLoop by_counts(std::string_view loop, const Arch& arch) {
    const double vector_cycles = arch.family == Family::cdna ? 4 : 1;  // a wave of 64 on 16 lanes, or of 32 on 32
    MainLoop counted;
    double matrix = 0, others = 0;
    while (!loop.empty()) {
        const std::string_view line = loop.substr(0, loop.find('\n'));
        loop.remove_prefix(std::min(loop.size(), line.size() + 1));
        if (is_matrix(line))
            matrix += matrix_flops(line) / matrix_flops_per_cycle(arch);
        else if (starts_with_any(line, {"ds_", "global_", "buffer_", "flat_"}))
            others += 4 * vector_cycles;
        else if (starts_with_any(line, {"v_exp_", "v_rcp_", "v_log_", "v_rsq_", "v_sqrt_"}))
            others += 4 * vector_cycles;
        else if (line.starts_with("v_"))
            others += vector_cycles;
        else
            others += 1;
    }
    counted.cycles = matrix + others;
    counted.busy_cycles = std::max(matrix, others);
    counted.method = "instruction counts";
    return counted;
}

}  // namespace

std::string main_loop_text(std::string_view disassembly) {
    const std::vector<Instruction> list = parse(disassembly);
    std::vector<size_t> matrix_before(list.size() + 1, 0);
    for (size_t i = 0; i < list.size(); ++i) matrix_before[i + 1] = matrix_before[i] + (is_matrix(list[i].text) ? 1 : 0);
    const auto place_of = [&](uint64_t address) {
        return static_cast<size_t>(std::ranges::lower_bound(list, address, {}, &Instruction::address) - list.begin());
    };
    size_t first = 0, last = 0, most = 0;
    for (size_t i = 0; i < list.size(); ++i) {
        if (!list[i].target || *list[i].target > list[i].address) continue;
        const size_t begin = place_of(*list[i].target), matrix = matrix_before[i + 1] - matrix_before[begin];
        const bool shorter = matrix == most && most > 0 && i - begin < last - first;
        if (matrix <= most && !shorter) continue;
        first = begin, last = i, most = matrix;
    }
    std::string text;
    for (size_t i = first; most > 0 && i <= last; ++i) {
        if (!list[i].target) {
            text.append(list[i].text).append("\n");
            continue;
        }
        const size_t landing = place_of(*list[i].target);
        const bool around = landing > i && landing <= last && matrix_before[landing] == matrix_before[i] && !list[i].text.starts_with("s_cbranch_exec");
        if (around) i = landing - 1;
    }
    return text;
}

Result<MainLoop> main_loop(const CodeObject& object, const Arch& arch) {
    const std::string program = tool("llvm-objdump");
    if (program.empty()) return Status(StatusCode::unavailable, "no llvm-objdump beside the compiler or in PATH");
    TILEWRIGHT_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::create());
    const std::string file = scratch.file("kernel.o");
    TILEWRIGHT_RETURN_IF_ERROR(write_file(file, object.bytes));
    const ProcessCommand command{.arguments = {program, "-d", file}};
    TILEWRIGHT_ASSIGN_OR_RETURN(const ProcessResult result, run_process(command));
    if (!result.succeeded()) return Status(StatusCode::unavailable, program + " " + describe(result, command) + ": " + result.error.substr(0, 300));
    const std::string loop = main_loop_text(result.output);
    if (loop.empty()) return Status(StatusCode::unsupported, "the kernel has no loop with matrix instructions");
    MainLoop weighed = by_llvm_mca(loop, arch).value_or(MainLoop{});
    if (weighed.cycles <= 0) weighed = by_counts(loop, arch);
    std::string_view rest = loop;
    while (!rest.empty()) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (is_matrix(line)) weighed.matrix_flops += matrix_flops(line);
    }
    // LLVM does not say how long RDNA's matrix unit is taken.
    weighed.busy_cycles = std::max(weighed.busy_cycles, weighed.matrix_flops / matrix_flops_per_cycle(arch));
    weighed.cycles = std::max(weighed.cycles, weighed.busy_cycles);
    return weighed;
}

}  // namespace tilewright::amd
