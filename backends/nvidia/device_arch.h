// Which architecture a device is, with the limits that it reports itself.
#pragma once
#include "backends/backend.h"
#include "backends/nvidia/driver.h"

namespace tilewright::nvidia {

// The table's row for the device's compute capability: of its major version, the newest that is not newer than the device.
// A device that no row covers runs the sm_80 family's text, compiled for itself: the row of sm_80 by another name ("sm_120").
Result<DeviceInfo> describe_device(const Driver& driver, int index);

// unsupported, naming both, if machine code for `code_arch` ("sm_80", "sm_90a") does not run on compute capability major.minor:
// another major version, a newer minor one, or an architecture-specific ("a") code for any other device.
Status check_runs_on(const std::string& code_arch, int major, int minor);

}  // namespace tilewright::nvidia
