// What a worker does on a real device: compile, check, measure, race.
#pragma once
#include <memory>
#include <optional>

#include "backends/backend.h"
#include "backends/device_monitor.h"
#include "tuner/protocol.h"
#include "verify/check.h"
#include "verify/device_workload.h"

namespace tilewright {

// Opens the device with the first request that needs it; holds one problem's data at a time. Not thread-safe.
class DeviceTasks {
public:
    DeviceTasks();
    ~DeviceTasks();
    WorkerReply handle(const WorkerRequest& request);

private:
    struct Flush;
    Status prepare(const WorkerRequest& request);
    Status compile(const WorkerRequest& request, WorkerReply& reply);
    Status evaluate(const WorkerRequest& request, WorkerReply& reply);
    Status race_all(const WorkerRequest& request, WorkerReply& reply);
    // The kernels of a config, from the files that compile() wrote.
    struct Loaded;
    Result<std::unique_ptr<Loaded>> load(const Config& config, const std::string& file);
    Sampler sampler(Loaded& candidate, bool cold);
    Sampler energy_sampler(Loaded& candidate);  // microjoules of a launch, each an average over many
    DeviceState state();                        // nothing is known where nothing can be read
    double energy_j();                          // of it; between launches, which must not wait for the rest

    std::unique_ptr<Device> device_;  // outlives what follows
    std::unique_ptr<DeviceMonitor> monitor_;
    std::optional<PreparedCheck> prepared_;
    std::optional<DeviceWorkload> data_;
    std::unique_ptr<Flush> flush_;
};

// "cpu:0", "nvidia:1" without opening it; a bare backend name is its device 0. not_found lists what there is.
Result<DeviceInfo> find_device(const std::string& id);

// The handler of `tilewright worker`: serves real devices until the input ends.
int run_device_worker();

}  // namespace tilewright
