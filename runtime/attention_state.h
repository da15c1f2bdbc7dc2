// What an open Attention holds.
#pragma once
#include <memory>
#include <vector>

#include "runtime/device_class.h"
#include "runtime/kernels.h"
#include "tilewright/attention.h"

namespace tilewright {

struct Attention::State {
    State(Backend& backend, std::unique_ptr<Device> opened, TuningDatabase tuning, bool cache_code)
        : device(std::move(opened)),
          database(std::move(tuning)),
          device_number(database.device(device_class(device->info()))),
          kernels(backend, *device, cache_code, packs()) {}

    // What the databases in use hold of compiled kernels.
    PackedCode packs() const {
        std::vector<std::string> paths;
        for (const DatabaseLayer& layer : database.layers())
            if (layer.status.ok()) paths.push_back(layer.path);
        return {paths, device->info().arch.name};
    }

    // With the config that the databases know for the problem.
    Result<ReadyOperation> ready(const Problem& problem, const CallTraits& traits) {
        return kernels.get(problem, database.lookup(problem, device_number).config, traits);
    }
    // The most that ready() will ask for, whatever the layout of the tensors.
    Result<int64_t> workspace_bytes(const Problem& problem, CallTraits traits);

    std::unique_ptr<Device> device;
    TuningDatabase database;
    int device_number;
    Kernels kernels;  // before the device in destruction
};

// invalid_argument unless the workspace is what the plan needs.
Status check_workspace(const OperationPlan& plan, const void* workspace, int64_t bytes);

}  // namespace tilewright
