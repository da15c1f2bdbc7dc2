// AMD's management library (AMD SMI), opened with dlopen.
#pragma once
#include "backends/device_monitor.h"

namespace tilewright::amd {

// The library that TILEWRIGHT_AMD_SMI_LIBRARY names, else ROCm's; `pci` is the device's address, "00000000:3b:00.0". unavailable: no such library, or it fails,
// with its words.
// Clocks, temperature and energy are read; throttling and processes are not.
Result<std::unique_ptr<DeviceMonitor>> open_amd_smi(const std::string& pci);

}  // namespace tilewright::amd
