// Where ROCm's shared libraries are.
#pragma once
#include <string>
#include <vector>

#include "backends/shared_library.h"

namespace tilewright::amd {

// The file that `variable` of the environment names and no other, else the first of `names` ("libamdhip64.so") found in
// ROCM_PATH/lib, the loader's path or /opt/rocm/lib. unavailable, with the loader's last reason. Thread-safe.
Result<SharedLibrary> open_rocm_library(const char* variable, const std::vector<std::string>& names);

}  // namespace tilewright::amd
