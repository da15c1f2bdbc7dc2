// What an open Attention holds.
#pragma once
#include <memory>
#include <vector>

#include "backends/backward_plan.h"
#include "runtime/device_class.h"
#include "runtime/kernels.h"
#include "tilewright/attention.h"

namespace tilewright {

struct Attention::State {
    State(Backend& backend, std::unique_ptr<Device> opened, TuningDatabase tuning, bool cache_code)
        : device(std::move(opened)),
          database(std::move(tuning)),
          device_number(database.device(device_class(device->info()))),
          kernels(backend, *device, cache_code) {}

    Result<Kernel*> kernel_for(const Problem& problem, bool aligned, bool rescaled, bool packed = false) {
        return kernels.get({KernelKind::attention_forward, problem, database.lookup(problem, device_number).config, aligned, rescaled, false, packed});
    }
    // The kernels of a backward, in the order of their launches.
    Result<std::vector<Kernel*>> backward_kernels(const Problem& problem, const Config& config, bool aligned);
    Config backward_config(const Problem& problem, bool aligned) const { return default_backward_config(problem, device->info().arch, aligned); }

    std::unique_ptr<Device> device;
    TuningDatabase database;
    int device_number;
    Kernels kernels;  // before the device in destruction
};

}  // namespace tilewright
