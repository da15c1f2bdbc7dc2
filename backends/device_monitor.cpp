// Choosing the vendor's library, and what two states say together.
#include "backends/device_monitor.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "backends/amd/amd_smi.h"
#include "backends/nvidia/nvml.h"

namespace tilewright {

Result<std::unique_ptr<DeviceMonitor>> open_monitor(const DeviceInfo& device) {
    if (device.arch.backend == "amd") return amd::open_amd_smi(device.pci);
    if (device.arch.backend != "nvidia") return Status(StatusCode::unsupported, "clocks of " + device.id + " are not read");
    const char* const named = std::getenv("TILEWRIGHT_NVML_LIBRARY");
    return nvidia::open_nvml(named != nullptr && *named != '\0' ? named : "libnvidia-ml.so.1", device.pci);
}

std::string remarks(const DeviceState& before, const DeviceState& after) {
    std::string text;
    const auto add = [&](const std::string& remark) { text += (text.empty() ? "" : "; ") + remark; };
    const std::string& throttled = after.throttled.empty() ? before.throttled : after.throttled;
    if (!throttled.empty()) add("clocks held down by " + throttled);
    if (const int others = std::max(before.others, after.others); others > 0) add(std::to_string(others) + (others == 1 ? " other process" : " other processes") + " on the device");
    if (before.clock_mhz > 0 && after.clock_mhz > 0 && std::fabs(before.clock_mhz - after.clock_mhz) > 0.05 * before.clock_mhz) {
        char clocks[80];
        std::snprintf(clocks, sizeof clocks, "the clock went from %.0f to %.0f MHz", before.clock_mhz, after.clock_mhz);
        add(clocks);
    }
    return text;
}

}  // namespace tilewright
