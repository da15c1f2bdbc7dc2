// What a kernel's main loop costs a wave, from its machine code and LLVM's scheduling model alone.
#pragma once
#include <string>
#include <string_view>

#include "backends/arch.h"
#include "backends/backend.h"

namespace tilewright::amd {

// One round of the main loop, by one wave.
struct MainLoop {
    double matrix_flops = 0;  // of its matrix instructions
    double cycles = 0;        // alone on its SIMD, everything it waits for included
    double busy_cycles = 0;   // that the busiest part of the SIMD works: a SIMD full of waves is no faster
    std::string method;       // "llvm-mca", "instruction counts"
};

// The loop is the innermost one with the most matrix instructions. Jumps in it that skip none of those are taken to be taken (they lead around
// masks, which few tiles need), unless they ask for an empty execution mask. llvm-mca judges it where it knows the architecture; elsewhere each
// instruction costs what its kind does at the architecture's rates. unavailable: no llvm-objdump beside the compiler or in PATH;
// unsupported: no loop with matrix instructions. Runs programs; thread-safe.
Result<MainLoop> main_loop(const CodeObject& object, const Arch& arch);

// The loop's instructions in `disassembly` (llvm-objdump -d), one a line, without jumps; empty: none.
std::string main_loop_text(std::string_view disassembly);

}  // namespace tilewright::amd
