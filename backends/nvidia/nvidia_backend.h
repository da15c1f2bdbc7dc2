// The NVIDIA backend: NVRTC to compile, the driver's library to run. Both are opened when first asked for.
#pragma once
#include <memory>
#include <string>

#include "backends/backend.h"

namespace tilewright::nvidia {

// `cuda_library`: the driver's library; empty: the file TILEWRIGHT_CUDA_LIBRARY, else libcuda.so.1.
std::unique_ptr<Backend> make_backend(std::string cuda_library = "");

}  // namespace tilewright::nvidia
