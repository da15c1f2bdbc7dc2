// A device as the tuning databases know it.
#pragma once
#include "backends/backend.h"
#include "tilewright/tuning.h"

namespace tilewright {

DeviceClass device_class(const DeviceInfo& info);
// What a lookup needs to know of today's kernels and the model, for one device's architecture.
LookupHooks lookup_hooks(const Arch& arch);

}  // namespace tilewright
