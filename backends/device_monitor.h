// What a device says of itself beside a measurement: its clocks, whether they are held down, and who else computes on it.
#pragma once
#include <memory>
#include <string>

#include "backends/backend.h"

namespace tilewright {

struct DeviceState {
    double clock_mhz = 0, memory_clock_mhz = 0, temperature_c = 0;  // 0: not known
    double energy_j = -1;                                           // taken since its driver was loaded; -1: not known
    std::string throttled;                                          // what holds its clocks down now, such as "power, heat"; empty: nothing that is known
    int others = -1;                                                // other processes that compute on it; -1: not known
};

// Not thread-safe.
class DeviceMonitor {
public:
    virtual ~DeviceMonitor() = default;
    // What cannot be read is not known.
    virtual DeviceState read() = 0;
    // energy_j of it alone, which is soon read.
    virtual double read_energy_j() = 0;
};

// Through the vendor's management library, opened when first asked for. unavailable: there is no such library, or it does not know the device;
// unsupported: of this vendor nothing is read.
Result<std::unique_ptr<DeviceMonitor>> open_monitor(const DeviceInfo& device);

// What a reader of measurements between two states should know, a part of a sentence: throttling, other processes, clocks that changed by more than a twentieth.
// Empty: nothing.
std::string remarks(const DeviceState& before, const DeviceState& after);

}  // namespace tilewright
