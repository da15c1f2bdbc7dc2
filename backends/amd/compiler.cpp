// Finds a compiler and runs it.
#include "backends/amd/compiler.h"

#include <cstdlib>

#include "backends/amd/code_object.h"
#include "backends/amd/hiprtc.h"
#include "core/process.h"
#include "core/scratch_directory.h"

namespace tilewright::amd {
namespace {

constexpr double timeout_seconds = 120;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// The first line of a log that reports an error; the first line if none does.
std::string first_error(const std::string& log) {
    size_t at = log.find("error:");
    if (at == log.npos) return first_line(log);
    size_t begin = log.rfind('\n', at);
    begin = begin == log.npos ? 0 : begin + 1;
    return log.substr(begin, log.find('\n', at) - begin);
}

Result<Compiler> find_hiprtc() {
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string version, hiprtc_version());
    return Compiler{"", version};
}

Result<Compiler> try_clang(const std::string& program) {
    std::string path = find_program(program);
    if (path.empty()) return Status(StatusCode::unavailable, program + " is not there");
    ProcessCommand command{.arguments = {path, "--version"}, .timeout_seconds = 20};
    TILEWRIGHT_ASSIGN_OR_RETURN(ProcessResult result, run_process(command));
    if (!result.succeeded()) return Status(StatusCode::unavailable, path + " --version " + describe(result, command));
    return Compiler{path, first_line(result.output)};
}

Result<CodeObject> finish(const std::string& output, std::string log, const Arch& arch) {
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string_view object, unbundle(output, arch.name));
    return CodeObject{arch.name, std::string(object), std::move(log)};
}

Result<CodeObject> compile_with_hiprtc(const KernelSource& source, const Arch& arch) {
    std::vector<std::string> options = compiler_flags();
    options.push_back("--offload-arch=" + arch.name);
    TILEWRIGHT_ASSIGN_OR_RETURN(HiprtcOutput output, hiprtc_compile(source.text, source.entry + ".hip", options));
    return finish(output.object, std::move(output.log), arch);
}

}  // namespace

const std::vector<std::string>& compiler_flags() {
    // Not -ffast-math: it deletes NaN and infinity. What is left of it here changes no special value. A division may be wrong in
    // its last bits: the only ones are one per row, and their error is far below the output's rounding.
    static const std::vector<std::string> flags = {
        "-std=c++20", "-O3", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fno-hip-fp32-correctly-rounded-divide-sqrt",
    };
    return flags;
}

Result<Compiler> find_compiler() {
    if (const char* chosen = getenv("TILEWRIGHT_AMD_COMPILER"); chosen && *chosen) return std::string(chosen) == "hiprtc" ? find_hiprtc() : try_clang(chosen);
    Result<Compiler> hiprtc = find_hiprtc();
    if (hiprtc.ok()) return hiprtc;
    std::vector<std::string> programs = {"/opt/rocm/llvm/bin/clang++", "clang++-19", "clang++-20", "clang++-21"};
    if (const char* rocm = getenv("ROCM_PATH"); rocm && *rocm) programs.insert(programs.begin(), std::string(rocm) + "/llvm/bin/clang++");
    std::string tried;
    for (const std::string& program : programs) {
        Result<Compiler> found = try_clang(program);
        if (found.ok()) return found;
        tried += (tried.empty() ? "" : ", ") + program;
    }
    return Status(StatusCode::unavailable, "no compiler for AMD: hipRTC is not there (" + hiprtc.status().message() + "), and none of " + tried +
                                               "; install clang-19 or set TILEWRIGHT_AMD_COMPILER");
}

const Result<Compiler>& compiler() {
    static const Result<Compiler> found = find_compiler();
    return found;
}

Result<CodeObject> compile(const Compiler& compiler, const KernelSource& source, const Arch& arch) {
    if (compiler.path.empty()) return compile_with_hiprtc(source, arch);
    TILEWRIGHT_ASSIGN_OR_RETURN(ScratchDirectory scratch, ScratchDirectory::create());
    std::string input = source.entry + ".hip";
    TILEWRIGHT_RETURN_IF_ERROR(write_file(scratch.file(input), source.text));

    // No HIP headers, no device libraries: kernels use builtins alone. The CUID would put the directory's name into the object.
    ProcessCommand command{.arguments = {compiler.path, "-x", "hip", "--offload-arch=" + arch.name, "--offload-device-only", "--no-gpu-bundle-output",
                                         "-nogpuinc", "-nogpulib", "-fuse-cuid=none", "-Rpass-analysis=kernel-resource-usage"},
                           .directory = scratch.path(),
                           .timeout_seconds = timeout_seconds};
    command.arguments.insert(command.arguments.end(), compiler_flags().begin(), compiler_flags().end());
    command.arguments.insert(command.arguments.end(), {input, "-o", "object"});
    TILEWRIGHT_ASSIGN_OR_RETURN(ProcessResult result, run_process(command));
    if (result.error.find("invalid target ID") != result.error.npos)
        return Status(StatusCode::unavailable, compiler.path + " (" + compiler.version + ") does not know " + arch.name + "; set TILEWRIGHT_AMD_COMPILER to a clang++ that does");
    if (!result.succeeded()) {
        std::string reason = result.timed_out || result.signal ? "" : ": " + first_error(result.error);
        return Status(result.timed_out ? StatusCode::timeout : StatusCode::compile,
                      compiler.path + " " + describe(result, command) + " on " + source.entry + " for " + arch.name + reason + "\n" + result.error);
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string output, read_file(scratch.file("object")));
    return finish(output, std::move(result.error), arch);
}

}  // namespace tilewright::amd
