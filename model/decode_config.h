// The config of a decode kernel, where nothing was measured.
#pragma once
#include "tilewright/config.h"
#include "tilewright/problem.h"

namespace tilewright {

// For the CPU. Legal for every valid decode problem.
Config decode_config(const Problem& problem);

}  // namespace tilewright
