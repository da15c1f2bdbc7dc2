// Emulated kernels of packed sequences of bf16: what they were compiled for, and how to run them on host memory.
#pragma once
#include <string>

#include "kernels/parameters.h"

namespace tilewright {
struct PackedCall;
}

namespace tilewright::emulated {

struct PackedKernel {
    const char* problem;  // heads, dims and mask
    int block_q;
    bool packs_heads;
    std::string (*run)(const kernel::PackedParameters& parameters, int order);  // as of EmulatedKernel
};

// Fails the test where a result is wrong. All rows of sequence `poisoned` are NaN.
void expect_right(const PackedKernel& kernel, PackedCall call, int order, int poisoned = -1);

}  // namespace tilewright::emulated
