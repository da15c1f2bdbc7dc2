// The processor as a device.
#pragma once
#include "backends/backend.h"

namespace tilewright {

// threads 0: TILEWRIGHT_CPU_THREADS, or as many as the machine has.
Result<std::unique_ptr<Device>> open_cpu(int threads = 0);

}  // namespace tilewright
