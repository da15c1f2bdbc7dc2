// The machine instructions that are counted. From sm_70 on an instruction is 16 bytes, little endian; bits 0 to 8 of the first
// word are the operation, bits 9 to 11 the form of its operands (register, constant, immediate, uniform register). NVIDIA does
// not document this: the table was read off nvdisasm's listings (sm_80, sm_89, sm_90a; CUDA 13.0), and a test compares counts with it.
#include "backends/nvidia/cubin.h"

namespace tilewright::nvidia {

std::span<const Opcode> opcodes() {
    static constexpr Opcode table[] = {
        {0x1f0, "hgmma", true},     // wgmma: a warpgroup's product of 16-bit or tf32 operands
        {0x03c, "hmma", true},      // mma.sync of 16-bit or tf32 operands
        {0x037, "imma", true},      // mma.sync of integers
        {0x03f, "dmma", true},      // mma.sync of doubles
        {0x03b, "ldsm", false},     // ldmatrix
        {0x044, "stsm", false},     // stmatrix
        {0x1ae, "ldgsts", false},   // cp.async
        {0x1b4, "utmaldg", false},  // cp.async.bulk.tensor
        {0x1ba, "ublkcp", false},   // cp.async.bulk
        {0x108, "mufu", false},     // exponentials, logarithms, reciprocals
        {0x189, "shfl", false},
        {0x181, "ldg", false},
        {0x186, "stg", false},
        {0x184, "lds", false},
        {0x188, "sts", false},
        {0x183, "ldl", false},      // local memory: spills and stack
        {0x187, "stl", false},
        {0x11d, "bar", false},
        {0x1c8, "usetmaxreg", false},
    };
    return table;
}

}  // namespace tilewright::nvidia
