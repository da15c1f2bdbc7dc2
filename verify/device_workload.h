// A workload on a device: upload, the launch's parameters, download, and whether anything but the outputs was written.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/operation_plan.h"
#include "verify/workload.h"

namespace tilewright {

struct DeviceFree {
    Device* device;
    void operator()(void* address) const { (void)device->free(address).ok(); }
};

// Owns device memory; must not outlive its Device. Not thread-safe.
class DeviceWorkload {
public:
    // Allocates and copies every buffer, guards included. Errors are the device's.
    static Result<DeviceWorkload> upload(Device& device, const Workload& workload);
    DeviceWorkload(DeviceWorkload&&) = default;
    DeviceWorkload& operator=(DeviceWorkload&&) = default;

    // Parameters of launches by a plan, with room for what it wants between kernels: NaN, or zeros if those are asked for. Must not outlive this.
    struct Bound {
        std::unique_ptr<void, DeviceFree> workspace;
        OperationParameters parameters;
    };
    Result<Bound> bind(const OperationPlan& plan) const;
    // Of the workload's operation, without a workspace. Pointers are the device's; the fields that Device::launch fills in are zero.
    const OperationParameters& parameters() const { return parameters_; }
    // Outputs of `workload` and of the device back to NaN, their guards and gaps to the pattern.
    Status reset_outputs(Workload& workload);
    // Every byte on the device back to what `workload`, which must be the one that was uploaded, holds.
    Status restore(const Workload& workload);
    // Copies the outputs back into `workload`, which must be the one that was uploaded. Gives an empty string or, if any other
    // byte of a buffer has changed, a sentence that names the buffer and the place.
    Result<std::string> download(Workload& workload) const;

private:
    explicit DeviceWorkload(Device& device) : device_(&device) {}
    Result<const void*> upload_integers(const void* numbers, int64_t bytes);  // null if there are none
    // What packed sequences have beside tensors, of PackedParameters or BackwardParameters; moves addresses to the first row.
    template <class Parameters>
    Status pack(const Workload& workload, Parameters& packed);

    Device* device_;
    std::vector<std::unique_ptr<void, DeviceFree>> buffers_;  // the workload's, in their order
    std::vector<std::unique_ptr<void, DeviceFree>> integers_;  // lengths, block table, starts
    OperationParameters parameters_;
};

// What a call with these tensors demands of its kernels.
CallTraits traits_of(const Workload& workload);

}  // namespace tilewright
