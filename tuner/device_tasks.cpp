// Compiling, checking and measuring candidates, inside a worker.
#include "tuner/device_tasks.h"

#include <unistd.h>

#include "backends/nvidia/nvrtc.h"
#include "core/scratch_directory.h"
#include "model/occupancy.h"
#include "model/space.h"
#include "runtime/kernels.h"
#include "tuner/energy.h"
#include "tuner/predict.h"
#include "tuner/worker.h"
#include "verify/check_backward.h"
#include "verify/device_workload.h"

namespace tilewright {
namespace {

Outcome outcome_of(StatusCode code) {
    switch (code) {
        case StatusCode::unsupported:
            return Outcome::constraints;
        case StatusCode::compile:
            return Outcome::compile;
        case StatusCode::timeout:
            return Outcome::timeout;
        default:
            return Outcome::runtime;
    }
}

// An operation may have several kernels: each has a file of its own.
std::string file_of(const std::string& candidate, size_t kernel) { return candidate + "." + std::to_string(kernel); }

std::string describe(const Resources& resources) {
    std::string text;
    const auto add = [&](const char* what, int64_t value) {
        if (value >= 0) text += (text.empty() ? "" : ", ") + std::string(what) + " " + std::to_string(value);
    };
    add("registers", resources.registers);
    add("shared bytes", resources.shared_bytes);
    add("spilled bytes", resources.spill_bytes);
    add("vector bits", resources.vector_bits);
    return text;
}

}  // namespace

// Device memory as large as the last-level cache: writing it leaves nothing of the problem in there.
struct DeviceTasks::Flush {
    Device* device;
    void* address;
    int64_t bytes;
    unsigned char value = 0;
    ~Flush() { (void)device->free(address).ok(); }
    Status operator()() { return device->fill(address, ++value, bytes); }
};

// A candidate with memory for its workspace.
struct DeviceTasks::Loaded {
    std::vector<std::unique_ptr<Kernel>> owned;
    ReadyOperation operation;
    DeviceWorkload::Bound bound;
};

DeviceTasks::DeviceTasks() = default;

DeviceTasks::~DeviceTasks() = default;

WorkerReply DeviceTasks::handle(const WorkerRequest& request) {
    WorkerReply reply;
    const auto act = [&]() -> Status {
        switch (request.action) {
            case WorkerAction::prepare:
                return prepare(request);
            case WorkerAction::compile:
                return compile(request, reply);
            case WorkerAction::evaluate:
                return evaluate(request, reply);
            case WorkerAction::race:
                return race_all(request, reply);
            case WorkerAction::predict:
                return predict_candidate(request, reply);
        }
        return {StatusCode::internal, "no such action"};
    };
    if (const Status status = act(); !status.ok()) {
        reply.outcome = outcome_of(status.code());
        reply.message = status.message();
    }
    return reply;
}

Status DeviceTasks::prepare(const WorkerRequest& request) {
    flush_.reset();
    data_.reset();
    TILEWRIGHT_ASSIGN_OR_RETURN(device_, open_device(request.device));
    auto monitor = open_monitor(device_->info());  // without one a measurement says less
    monitor_ = monitor.ok() ? *std::move(monitor) : nullptr;
    if (request.energy && energy_j() < 0)
        return {StatusCode::unavailable, "it does not say how much energy it takes" + (monitor.ok() ? "" : ": " + monitor.status().message())};
    CheckOptions options;
    options.max_rows = 128;
    TILEWRIGHT_ASSIGN_OR_RETURN(Backend* const backend, find_backend(device_->info().arch.backend));
    Kernels kernels(*backend, *device_, true);
    const auto forward = [&](const Problem& problem, const CallTraits& traits) { return kernels.get(problem, default_config(problem, device_->info().arch), traits); };
    TILEWRIGHT_ASSIGN_OR_RETURN(prepared_, prepare_check(*device_, forward, request.problem, options));
    TILEWRIGHT_ASSIGN_OR_RETURN(data_, DeviceWorkload::upload(*device_, prepared_->workload));
    return {};
}

Status DeviceTasks::compile(const WorkerRequest& request, WorkerReply& reply) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const DeviceInfo info, find_device(request.device));
    TILEWRIGHT_ASSIGN_OR_RETURN(Backend* const backend, find_backend(info.arch.backend));
    TILEWRIGHT_ASSIGN_OR_RETURN(const OperationPlan plan, plan_operation(request.problem, request.configs[0], info.arch, dense_traits(request.problem)));
    for (size_t i = 0; i < plan.kernels.size(); ++i) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const KernelSource source, generate(plan.kernels[i], info.arch));
        TILEWRIGHT_ASSIGN_OR_RETURN(const CodeObject object, compile_cached(*backend, source, info.arch, CodeCache::of_user()));
        if (const auto resources = backend->inspect(object); resources.ok()) {
            if (plan.kernels.size() > 1) reply.note += (i > 0 ? "; " : "") + source.entry + ": ";
            reply.note += describe(*resources);
            reply.resident_blocks.push_back(occupancy(source, *resources, info.arch).blocks);
            const std::string reason = info.arch.backend == "nvidia" ? nvidia::reason_to_reject(object.log, *resources, nvidia::candidates_spill_bytes) : "";
            if (!reason.empty()) return {StatusCode::unsupported, source.entry + ": " + reason};
        }
        TILEWRIGHT_RETURN_IF_ERROR(write_file(file_of(request.files[0], i), object.bytes));
    }
    return {};
}

Result<std::unique_ptr<DeviceTasks::Loaded>> DeviceTasks::load(const Config& config, const std::string& file) {
    if (!data_) return Status(StatusCode::internal, "the worker was asked to measure before it was prepared");
    const Arch& arch = device_->info().arch;
    const Problem& problem = prepared_->workload.problem;
    ReadyOperation operation;
    std::vector<std::unique_ptr<Kernel>> owned;
    TILEWRIGHT_ASSIGN_OR_RETURN(operation.plan, plan_operation(problem, config, arch, dense_traits(problem)));
    for (size_t i = 0; i < operation.plan.kernels.size(); ++i) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const KernelSource source, generate(operation.plan.kernels[i], arch));
        CodeObject object{arch.name, {}, {}};
        TILEWRIGHT_ASSIGN_OR_RETURN(object.bytes, read_file(file_of(file, i)));
        TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, device_->load(object, operation.plan.kernels[i], source));
        operation.kernels.push_back(kernel.get());
        owned.push_back(std::move(kernel));
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload::Bound bound, data_->bind(operation.plan));
    return std::make_unique<Loaded>(Loaded{std::move(owned), std::move(operation), std::move(bound)});
}

Sampler DeviceTasks::sampler(Loaded& candidate, bool cold) {
    return [this, &candidate, cold](int launches) {
        return device_->time_us(
            launches, [this, cold]() -> Status { return cold && flush_ ? (*flush_)() : Status(); },
            [this, &candidate] { return launch(*device_, candidate.operation.kernels, candidate.bound.parameters, nullptr); });
    };
}

Sampler DeviceTasks::energy_sampler(Loaded& candidate) {
    return [this, &candidate](int count) -> Result<std::vector<double>> {
        std::vector<double> microjoules;
        for (int i = 0; i < count; ++i) {
            TILEWRIGHT_ASSIGN_OR_RETURN(const double joules, measure_energy(sampler(candidate, false), [this] { return energy_j(); }));
            microjoules.push_back(joules * 1e6);
        }
        return microjoules;
    };
}

DeviceState DeviceTasks::state() { return monitor_ ? monitor_->read() : DeviceState{}; }
double DeviceTasks::energy_j() { return monitor_ ? monitor_->read_energy_j() : DeviceState{}.energy_j; }

Status DeviceTasks::evaluate(const WorkerRequest& request, WorkerReply& reply) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<Loaded> candidate, load(request.configs[0], request.files[0]));
    for (Kernel* kernel : candidate->operation.kernels)
        if (const auto blocks = device_->resident_blocks(*kernel); blocks.ok()) reply.resident_blocks.push_back(*blocks);
    TILEWRIGHT_ASSIGN_OR_RETURN(const CheckReport report, check(*device_, candidate->operation, *data_, *prepared_));
    reply.error = report.relative_error();
    if (!report.passed) {
        reply.outcome = Outcome::correctness;
        reply.message = report.failure;
        return {};
    }
    if (request.cold && !flush_) {
        const int64_t bytes = device_->info().arch.last_level_cache_bytes;
        TILEWRIGHT_ASSIGN_OR_RETURN(void* address, device_->allocate(bytes));
        flush_.reset(new Flush{device_.get(), address, bytes});
    }
    MeasureOptions options;
    options.budget_seconds = request.seconds;
    if (request.give_up_us > 0) options.give_up_us = request.give_up_us;
    const DeviceState before = state();
    TILEWRIGHT_ASSIGN_OR_RETURN(const Timing timing, measure(sampler(*candidate, request.cold), options));
    const DeviceState after = state();
    reply.clock_mhz = after.clock_mhz, reply.memory_clock_mhz = after.memory_clock_mhz, reply.temperature_c = after.temperature_c;
    reply.exclusive = after.others < 0 ? -1 : after.others == 0 && before.others == 0;
    reply.remark = remarks(before, after);
    if (timing.median_us < request.roofline_us) {
        char text[120];
        snprintf(text, sizeof text, "%.3f us is below the roofline's %.3f us: not possible", timing.median_us, request.roofline_us);
        return {StatusCode::runtime, text};
    }
    reply.timings = {timing};
    if (request.energy) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<double> microjoules, energy_sampler(*candidate)(1));
        reply.energy_j = microjoules[0] / 1e6;
    }
    return {};
}

Status DeviceTasks::race_all(const WorkerRequest& request, WorkerReply& reply) {
    std::vector<std::unique_ptr<Loaded>> candidates;
    std::vector<Sampler> samplers;
    for (size_t i = 0; i < request.configs.size(); ++i) {
        TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Loaded> candidate, load(request.configs[i], request.files[i]));
        samplers.push_back(request.energy ? energy_sampler(*candidate) : sampler(*candidate, request.cold));
        candidates.push_back(std::move(candidate));
    }
    const DeviceState before = state();
    TILEWRIGHT_ASSIGN_OR_RETURN(const RaceResult result, race(samplers, {.budget_seconds = request.seconds, .samples_per_turn = request.energy ? 1 : 3}));
    reply.remark = remarks(before, state());
    reply.timings = result.timings;
    reply.winner = result.winner;
    reply.ties = result.ties;
    return {};
}

int run_device_worker() {
    DeviceTasks tasks;
    // Less than the machine has, so that a candidate that wants everything is told "out of memory" and others live on.
    const int64_t physical = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    return serve_worker([&](const WorkerRequest& request) { return tasks.handle(request); }, physical / 10 * 9);
}

Result<DeviceInfo> find_device(const std::string& id) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Backend* const backend, find_backend(id.substr(0, id.find(':'))));
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices, backend->devices());
    std::string known;
    for (const DeviceInfo& device : devices) {
        if (device.id == id || device.id == id + ":0") return device;
        known += (known.empty() ? "" : ", ") + device.id;
    }
    return Status(StatusCode::not_found, "no device '" + id + "'; there is " + (known.empty() ? "none" : known));
}

}  // namespace tilewright
