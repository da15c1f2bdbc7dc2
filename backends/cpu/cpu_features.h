// What kernels are written for on this machine's processor.
#pragma once
#include <string>

namespace tilewright {

struct CpuFeatures {
    int vector_floats = 4;  // floats of the widest vector
    bool bf16_dot = false;  // VDPBF16PS: two bf16 products a lane, float sum
    std::string name;       // the processor, as it calls itself
};
// Read once. TILEWRIGHT_CPU_VECTOR_FLOATS=4|8|16 forces narrower vectors (for tests).
const CpuFeatures& cpu_features();

}  // namespace tilewright
