// NVIDIA's management library (NVML), opened with dlopen.
#pragma once
#include "backends/device_monitor.h"

namespace tilewright::nvidia {

// `library` is a path or a name for the loader; `pci` the device's address, "00000000:3b:00.0". unavailable: no such library, or it fails, with its words.
Result<std::unique_ptr<DeviceMonitor>> open_nvml(const std::string& library, const std::string& pci);

}  // namespace tilewright::nvidia
