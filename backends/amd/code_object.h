// What an AMD code object says about itself: the metadata note, and where each kernel's machine code lies.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/status.h"

namespace tilewright::amd {

struct Argument {
    int64_t offset = 0;  // bytes from the start of the kernel's argument block
    int64_t size = 0;    // bytes
    std::string kind;    // "by_value", "global_buffer", "hidden_block_count_x", ...
};

struct KernelCode {
    std::string name;          // entry point
    std::string symbol;        // of its descriptor: the name with ".kd"
    int vector_registers = 0;  // of a lane; where the register file is unified (gfx90a and later CDNA) this counts AGPRs too
    int accumulation_registers = 0;
    int scalar_registers = 0;
    int64_t group_bytes = 0;    // static LDS of a block
    int64_t private_bytes = 0;  // scratch of a lane
    int vector_spills = 0;      // registers
    int scalar_spills = 0;
    int wave_size = 0;  // lanes
    int64_t argument_bytes = 0;
    int64_t argument_alignment = 0;
    int max_threads = 0;  // of a block
    std::vector<Argument> arguments;
    std::string_view code;  // machine code; points into the bytes that were read
};

struct ParsedObject {
    std::string target;  // "amdgcn-amd-amdhsa--gfx942"
    std::string arch;    // "gfx942", without feature suffixes
    std::vector<KernelCode> kernels;
};

// `bytes` must outlive the result. invalid_argument, with what is wrong, for anything but a whole code object of version 3
// or later. Reads no byte outside `bytes`, whatever they are. Thread-safe.
Result<ParsedObject> read_code_object(std::string_view bytes);

// The code object for `arch` inside a clang offload bundle; bytes that are no bundle are returned as they are.
// not_found: the bundle has none for this architecture.
Result<std::string_view> unbundle(std::string_view bytes, std::string_view arch);

}  // namespace tilewright::amd
