// Runs the system compiler and its disassembler.
#include "backends/cpu/cpu_compiler.h"

#include <cstdlib>
#include <mutex>
#include <sstream>

#include "backends/cpu/cpu_features.h"
#include "core/process.h"
#include "core/scratch_directory.h"

namespace tilewright {
namespace {

// Everything of -ffast-math that keeps NaN, infinity and the order of sums.
const char* const flags[] = {"-std=c++20",
                             "-O3",
                             "-march=native",
                             "-fPIC",
                             "-shared",
                             "-fno-math-errno",
                             "-fno-trapping-math",
                             "-ffp-contract=fast",
                             "-fno-exceptions",
                             "-fno-rtti",
                             "-fno-strict-aliasing",
                             "-fvisibility=hidden",
                             "-w"};

std::string compiler_path() {
    static const std::string path = [] {
        if (const char* chosen = std::getenv("TILEWRIGHT_CXX")) return find_program(chosen);
        for (const char* candidate : {"g++", "clang++", "clang++-19", "c++"})
            if (std::string found = find_program(candidate); !found.empty()) return found;
        return std::string();
    }();
    return path;
}

Status no_compiler() { return {StatusCode::unavailable, "no C++ compiler found: set TILEWRIGHT_CXX or install g++"}; }

// GCC prefers 256-bit vectors on processors that slow down with 512; a Value's width is the register's, so say it.
std::vector<std::string> compile_command(const std::string& from, const std::string& to) {
    std::vector<std::string> command{compiler_path()};
    command.insert(command.end(), std::begin(flags), std::end(flags));
    if (cpu_features().vector_floats == 16) command.push_back("-mprefer-vector-width=512");
    for (const std::string& argument : {std::string("-o"), to, std::string("-x"), std::string("c++"), from, std::string("-lm")}) command.push_back(argument);
    return command;
}

}  // namespace

Result<std::string> cpu_toolchain() {
    if (compiler_path().empty()) return no_compiler();
    static const Result<std::string> version = []() -> Result<std::string> {
        TILEWRIGHT_ASSIGN_OR_RETURN(ProcessResult result, run_process({.arguments = {compiler_path(), "--version"}, .timeout_seconds = 20}));
        return result.output.substr(0, result.output.find('\n'));
    }();
    if (!version.ok()) return version.status();
    std::string text = *version + ";";
    for (const char* flag : flags) text += std::string(" ") + flag;
    return text + "; " + cpu_features().name + "; vector_floats " + std::to_string(cpu_features().vector_floats);
}

Result<CodeObject> compile_for_cpu(const KernelSource& source, const Arch& arch) {
    if (compiler_path().empty()) return no_compiler();
    TILEWRIGHT_ASSIGN_OR_RETURN(ScratchDirectory directory, ScratchDirectory::create());
    std::string from = directory.file("kernel.cpp"), to = directory.file("kernel.so");
    TILEWRIGHT_RETURN_IF_ERROR(write_file(from, source.text));
    ProcessCommand command{.arguments = compile_command(from, to), .timeout_seconds = 120};
    TILEWRIGHT_ASSIGN_OR_RETURN(ProcessResult result, run_process(command));
    if (!result.succeeded())
        return Status(result.timed_out ? StatusCode::timeout : StatusCode::compile,
                      "the compiler " + describe(result, command) + ": " + result.error.substr(0, 2000));
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string bytes, read_file(to));
    return CodeObject{arch.name, std::move(bytes), result.error};
}

Result<Resources> inspect_cpu_object(const CodeObject& object) {
    Resources resources;
    if (find_program("objdump").empty()) return resources;
    TILEWRIGHT_ASSIGN_OR_RETURN(ScratchDirectory directory, ScratchDirectory::create());
    std::string path = directory.file("kernel.so");
    TILEWRIGHT_RETURN_IF_ERROR(write_file(path, object.bytes));
    ProcessCommand command{.arguments = {"objdump", "-d", "--no-show-raw-insn", path}, .timeout_seconds = 60, .output_limit = size_t{64} << 20};
    TILEWRIGHT_ASSIGN_OR_RETURN(ProcessResult result, run_process(command));
    if (!result.succeeded()) return resources;
    int fused = 0, dots = 0, bits = 64;
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);) {
        if (line.find("vfmadd") != line.npos || line.find("vfnmadd") != line.npos) ++fused;
        if (line.find("vdpbf16ps") != line.npos) ++dots;
        for (auto [reg, width] : {std::pair{"%zmm", 512}, {"%ymm", 256}, {"%xmm", 128}})
            if (bits < width && line.find(reg) != line.npos) bits = width;
    }
    resources.vector_bits = bits;
    resources.matrix_instructions = fused + dots;
    resources.instructions = {{"fma", fused}, {"bf16_dot", dots}};
    return resources;
}

}  // namespace tilewright
