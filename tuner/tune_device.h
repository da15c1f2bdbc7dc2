// Devices of this machine, as tuning takes them.
#pragma once
#include <string>
#include <vector>

#include "backends/backend.h"
#include "db/store.h"

namespace tilewright {

// A device to tune on, and what its code is made by.
struct TuneDevice {
    DeviceInfo info;
    Toolchain toolchain;
};

// not_found: no such device, and which there are; the backend's error if there is no compiler for it.
Result<TuneDevice> find_tune_device(const std::string& id);

// Those of a list like "nvidia:0,nvidia:1", each once; "all" is every GPU, or the CPU where there is none. Errors as above, of the first that cannot be used;
// invalid_argument: an empty list.
Result<std::vector<TuneDevice>> find_tune_devices(const std::string& list);

}  // namespace tilewright
