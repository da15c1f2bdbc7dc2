// Compiles kernel text for AMD: with hipRTC where ROCm's runtime is, else with ROCm's or the system's clang++.
#pragma once
#include <string>
#include <vector>

#include "backends/arch.h"
#include "backends/backend.h"

namespace tilewright::amd {

struct Compiler {
    std::string path;     // of clang++; empty: hipRTC
    std::string version;  // one line, as the compiler says it
};

// Looks for a compiler, in this order: TILEWRIGHT_AMD_COMPILER (a clang++, or the word "hiprtc"), which excludes all others;
// hipRTC; ROCM_PATH/llvm/bin/clang++; /opt/rocm/llvm/bin/clang++; clang++-19, -20, -21 in PATH.
// unavailable, with all that was tried. Thread-safe.
Result<Compiler> find_compiler();
// The same, looked for once per process.
const Result<Compiler>& compiler();

// What either compiler is told besides the architecture. NaN, infinity and subnormal numbers keep their meaning.
const std::vector<std::string>& compiler_flags();

// The bare ELF for `arch`, the same bytes for the same text. With clang++ the log holds its remarks on resource use.
// compile: the first error, then the whole log; timeout: it took longer than two minutes; unavailable: the compiler is
// gone or does not know `arch`. Thread-safe: clang++ runs in parallel, hipRTC queues calls by itself.
Result<CodeObject> compile(const Compiler& compiler, const KernelSource& source, const Arch& arch);

}  // namespace tilewright::amd
