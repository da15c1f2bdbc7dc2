// What kinds of instructions a piece of AMD machine code consists of, read from its encoding alone.
#pragma once
#include <cstdint>
#include <string_view>

#include "backends/arch.h"
#include "tilewright/status.h"

namespace tilewright::amd {

// Static counts: an instruction in a loop counts once.
struct InstructionCounts {
    int matrix = 0;         // MFMA, SMFMAC, WMMA, SWMMAC
    int lds = 0;            // LDS reads, writes and atomics
    int lane_exchange = 0;  // permute and swizzle: the LDS unit's, without LDS memory
    int global_load = 0;    // flat, global and buffer loads
    int global_store = 0;   // ... stores and atomics
    int scratch = 0;        // loads and stores of a lane's private memory
    int scalar_load = 0;
    int exponential = 0;  // v_exp_f32
    int wait = 0;         // for memory counters
    int barrier = 0;
    int total = 0;  // all instructions; padding behind the last s_endpgm is not code
};

// `code` is one kernel. unsupported: an encoding that is not of this family, with its place.
Result<InstructionCounts> count_instructions(std::string_view code, Family family);

}  // namespace tilewright::amd
