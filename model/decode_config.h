// The config of a decode kernel, where nothing was measured.
#pragma once
#include "backends/arch.h"
#include "tilewright/config.h"
#include "tilewright/problem.h"

namespace tilewright {

// Legal for every decode problem that the architecture decodes; `aligned` as in KernelSpec.
Config decode_config(const Problem& problem, const Arch& arch, bool aligned = true);

}  // namespace tilewright
