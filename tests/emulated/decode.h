// Emulated decode kernels, of bf16: what they were compiled for, and how to run them on host memory.
#pragma once
#include <string>

#include "kernels/parameters.h"

namespace tilewright {
struct DecodeCall;
}

namespace tilewright::emulated {

struct DecodeKernel {
    const char* problem;
    int block_q;
    bool paged;
    std::string (*run)(const kernel::DecodeParameters& parameters, int blocks, int order);  // as of EmulatedKernel
};

// Fails the test where a result is wrong; each line of KV tiles is cut into `units`.
void expect_right(const DecodeKernel& kernel, DecodeCall call, int units, int order);

}  // namespace tilewright::emulated
