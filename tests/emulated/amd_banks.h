// Accesses of a wave to LDS, of kernels by AMD's arch headers, for counting bank conflicts.
#pragma once
#include <string>
#include <vector>

namespace tilewright::emulated {

struct LdsAccess {
    std::string what;
    int bytes;                // of a lane: 8 or 16
    std::vector<int> offset;  // of each lane; -1: takes no part
};
std::vector<LdsAccess> lds_accesses();

}  // namespace tilewright::emulated
