// The NVIDIA backend: NVRTC to compile, the driver's library to run. Both are opened when first asked for. nvidia_backend() is the
// process's own.
#pragma once
#include <memory>
#include <string>

#include "backends/registry.h"

namespace tilewright::nvidia {

// One that opens `cuda_library` in place of the file TILEWRIGHT_CUDA_LIBRARY or libcuda.so.1. Its devices must not outlive it.
std::unique_ptr<Backend> make_backend(std::string cuda_library);

}  // namespace tilewright::nvidia
