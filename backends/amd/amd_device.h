// An AMD device: memory, loaded kernels, launches, times.
#pragma once
#include <memory>

#include "backends/amd/hip.h"
#include "backends/backend.h"

namespace tilewright::amd {

// The table's row of the device's architecture, or of its generation's, with what HIP reports in place of the table's.
// unsupported: there are no kernels for its generation.
Result<DeviceInfo> describe_device(const Hip& hip, int index);

// Every call makes the device current for its own duration; what the caller had made current is current again afterwards.
// Launches are plain launches on the caller's stream and may be captured into a graph. `hip` must outlive the device.
Result<std::unique_ptr<Device>> open_device(const Hip& hip, int index);

}  // namespace tilewright::amd
