// Emulated kernels of the backward: what they were compiled for, and how to run them on host memory.
#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "kernels/parameters.h"

namespace tilewright::emulated {

enum class Pass { prologue, keys, keys_alone, values_alone, queries, bias, epilogue, sink };

struct EmulatedBackward {
    std::string name;
    std::string problem;  // head dimensions, type, mask and variants: "d64,bf16,causal"
    bool aligned;
    int block_q, block_kv;
    // Of a launch whose work order is filled in; `order` and what is returned: as of EmulatedKernel.
    std::string (*run)(Pass pass, const kernel::BackwardParameters& parameters, int order);
    int dq = 0;
    bool swaps = false;  // the pass over queries has tiles of block_kv queries and block_q keys
    bool apart = false;  // dK and dV have a pass each, always
    bool persistent = false;  // the pass over keys does the epilogue's work, and but for the first head's the prologue's

    std::vector<Pass> passes() const {  // of all gradients
        Pass last = dq ? Pass::epilogue : Pass::queries;
        if (persistent) return {Pass::keys};
        return apart ? std::vector<Pass>{Pass::keys_alone, Pass::values_alone, last} : std::vector<Pass>{Pass::keys, last};
    }
};

inline void PrintTo(const EmulatedBackward& kernels, std::ostream* to) { *to << kernels.name; }

// One list a family.
std::vector<EmulatedBackward> cdna_backward();
std::vector<EmulatedBackward> rdna3_backward();
std::vector<EmulatedBackward> rdna4_backward();
// The same of packed sequences.
std::vector<EmulatedBackward> cdna_packed_backward();
std::vector<EmulatedBackward> rdna3_packed_backward();
std::vector<EmulatedBackward> rdna4_packed_backward();

}  // namespace tilewright::emulated
