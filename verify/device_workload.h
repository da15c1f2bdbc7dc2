// A workload on a device: upload, the launch's parameters, download, and whether anything but the outputs was written.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "verify/workload.h"

namespace tilewright {

// Owns device memory; must not outlive its Device. Not thread-safe.
class DeviceWorkload {
public:
    // Allocates and copies every buffer, guards included, and makes room for the scores of attention_materialized and the workspace of
    // a backward problem, whose config that takes. Errors are the device's.
    static Result<DeviceWorkload> upload(Device& device, const Workload& workload, KernelKind kind = KernelKind::attention_forward, const Config& config = {});
    DeviceWorkload(DeviceWorkload&&) = default;
    DeviceWorkload& operator=(DeviceWorkload&&) = default;

    // Pointers are the device's; the fields that Device::launch fills in are zero.
    const kernel::ForwardParameters& parameters() const { return parameters_; }
    // Of a backward problem, with workspaces that hold NaN.
    const kernel::BackwardParameters& backward_parameters() const { return backward_; }
    // Outputs of `workload` and of the device back to NaN, their guards and gaps to the pattern.
    Status reset_outputs(Workload& workload);
    // Copies the outputs back into `workload`, which must be the one that was uploaded. Gives an empty string or, if any other
    // byte of a buffer has changed, a sentence that names the buffer and the place.
    Result<std::string> download(Workload& workload) const;

private:
    struct Free {
        Device* device;
        void operator()(void* address) const { (void)device->free(address).ok(); }
    };
    explicit DeviceWorkload(Device& device) : device_(&device) {}

    Device* device_;
    std::vector<std::unique_ptr<void, Free>> buffers_;  // the workload's, in their order; then the scores or the workspace, if any
    kernel::ForwardParameters parameters_{};
    kernel::BackwardParameters backward_{};
};

// What a kernel for this workload is specialised for.
KernelSpec spec_for(const Workload& workload, const Config& config, KernelKind kind = KernelKind::attention_forward);

}  // namespace tilewright
