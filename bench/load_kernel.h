// A kernel for a benchmark, compiled anew and loaded.
#pragma once
#include <memory>

#include "backends/backend.h"

namespace tilewright::bench {

// unsupported: the config cannot run, spills a register, or has its products serialised. Errors of compiler and device as they are.
Result<std::unique_ptr<Kernel>> load_kernel(Device& device, const KernelSpec& spec);

}  // namespace tilewright::bench
