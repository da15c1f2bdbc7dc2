// The resources of an AMD code object, from its own bytes: no device, no tool.
#pragma once
#include "backends/backend.h"

namespace tilewright::amd {

// Of the object's first kernel. `registers` is what a lane takes of its SIMD's register file: on CDNA from gfx90a on that is one
// file for VGPRs and AGPRs together, so it counts both, and accumulation_registers says how many of them are AGPRs.
// Instruction groups (static counts): those of InstructionCounts. Where the machine code holds something unknown they are absent
// and matrix_instructions is -1. invalid_argument: not an AMD code object. Thread-safe.
Result<Resources> inspect(const CodeObject& object);

}  // namespace tilewright::amd
