// The system compiler: kernel text to a shared library, and what is in it.
#pragma once
#include "backends/backend.h"

namespace tilewright {

// TILEWRIGHT_CXX, or the first of g++, clang++, c++ in PATH. unavailable if there is none.
Result<std::string> cpu_toolchain();  // path, version and flags
Result<CodeObject> compile_for_cpu(const KernelSource& source, const Arch& arch);
// Widest vector register and instruction counts, by disassembly (objdump comes with the compiler); -1 without it.
Result<Resources> inspect_cpu_object(const CodeObject& object);

}  // namespace tilewright
