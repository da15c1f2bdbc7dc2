// Where each vendor's backend comes from.
#pragma once
#include "backends/backend.h"

namespace tilewright {

Backend& cpu_backend();
Backend& nvidia_backend();
Backend& amd_backend();

}  // namespace tilewright
