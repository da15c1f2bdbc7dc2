// What a cubin (NVIDIA's ELF file of machine code) says about itself: registers, memory, instructions. No device, no CUDA tools.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/status.h"

namespace tilewright::nvidia {

// One kernel of a cubin.
struct CubinKernel {
    std::string name;
    int registers = 0;            // per lane, at entry
    int64_t shared_bytes = 0;     // static, without what the driver reserves in every block
    int64_t local_bytes = 0;      // stack frame of a lane
    int parameter_bytes = 0;      // of all parameters, without what aligns them
    std::vector<std::pair<std::string, int>> instructions;  // static counts of the groups in opcodes(), zeros left out
};

// A group of machine instructions: all whose opcode field, less the three bits that say where operands come from, is `bits`.
struct Opcode {
    int bits;          // bits 0 to 8 of the 16-byte instruction
    const char* name;  // as nvdisasm prints it, in lower case
    bool matrix;       // a product of matrices
};
std::span<const Opcode> opcodes();

// All kernels of the file, in its order. invalid_argument, saying what is wrong, if it is no complete cubin for sm_80 or later.
// Any bytes are safe to pass.
Result<std::vector<CubinKernel>> read_cubin(std::string_view file);

}  // namespace tilewright::nvidia
