// The Device interface in HIP calls.
#include "backends/amd/amd_device.h"

#include <algorithm>
#include <cmath>

#include "backends/amd/code_object.h"
#include "backends/decode_plan.h"
#include "backends/launch.h"

namespace tilewright::amd {
namespace {

// Makes a device current, and on every way out what was current before.
class Current {
public:
    explicit Current(const Hip& hip) : hip_(hip) {}
    ~Current() {
        if (before_ >= 0) (void)hip_.check("hipSetDevice", hip_.SetDevice(before_)).ok();  // it was current: it can be again
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    Status set(int device) {
        int now = 0;
        TILEWRIGHT_HIP(hip_, GetDevice, &now);
        if (now == device) return {};
        TILEWRIGHT_HIP(hip_, SetDevice, device);
        before_ = now;
        return {};
    }

private:
    const Hip& hip_;
    int before_ = -1;
};

struct AmdKernel : Kernel {
    AmdKernel(const Hip& api, KernelSpec kernel_spec, const KernelSource& source)
        : hip(api), spec(std::move(kernel_spec)), threads(source.threads), shared_bytes(source.shared_bytes) {}
    ~AmdKernel() override {
        if (module) (void)hip.check("hipModuleUnload", hip.ModuleUnload(module)).ok();  // a lost device refuses, and has lost it
    }
    const Hip& hip;
    const KernelSpec spec;
    const int threads;
    const int64_t shared_bytes;  // dynamic
    Module module = nullptr;
    Function function = nullptr;
};

class Events {
public:
    explicit Events(const Hip& hip) : hip_(hip) {}
    ~Events() {
        for (Event event : all_) (void)hip_.check("hipEventDestroy", hip_.EventDestroy(event)).ok();
    }
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;
    Result<Event> record() {
        Event event = nullptr;
        TILEWRIGHT_HIP(hip_, EventCreate, &event);
        all_.push_back(event);
        TILEWRIGHT_HIP(hip_, EventRecord, event, nullptr);
        return event;
    }

private:
    const Hip& hip_;
    std::vector<Event> all_;
};

Status check_size(int64_t bytes) { return bytes < 0 ? invalid_argument("a size is " + std::to_string(bytes) + " bytes; it must be from 0 on") : Status(); }

class AmdDevice : public Device {
public:
    AmdDevice(const Hip& hip, int index, DeviceInfo info) : hip_(hip), index_(index), info_(std::move(info)) {}
    const DeviceInfo& info() const override { return info_; }

    Result<void*> allocate(int64_t bytes) override {
        TILEWRIGHT_RETURN_IF_ERROR(check_size(bytes));
        return produce<void*>([&](void*& address) { return hip_.check("hipMalloc", hip_.Malloc(&address, static_cast<size_t>(std::max<int64_t>(bytes, 1)))); });
    }
    Status free(void* address) override {
        return run([&] { return hip_.check("hipFree", hip_.Free(address)); });
    }
    Status copy_to_device(void* to, const void* from, int64_t bytes) override {
        TILEWRIGHT_RETURN_IF_ERROR(check_size(bytes));
        return run([&]() -> Status {
            TILEWRIGHT_HIP(hip_, Memcpy, to, from, static_cast<size_t>(bytes), amd::copy_to_device);
            return hip_.check("hipStreamSynchronize", hip_.StreamSynchronize(nullptr));  // the last staged piece may be on its way
        });
    }
    Status copy_to_host(void* to, const void* from, int64_t bytes) override {
        TILEWRIGHT_RETURN_IF_ERROR(check_size(bytes));
        return run([&] { return hip_.check("hipMemcpy", hip_.Memcpy(to, from, static_cast<size_t>(bytes), amd::copy_to_host)); });
    }
    Status fill(void* to, unsigned char value, int64_t bytes) override {
        TILEWRIGHT_RETURN_IF_ERROR(check_size(bytes));
        return run([&] { return hip_.check("hipMemset", hip_.Memset(to, value, static_cast<size_t>(bytes))); });
    }
    Status synchronize() override {
        return run([&] { return hip_.check("hipDeviceSynchronize", hip_.DeviceSynchronize()); });
    }

    Result<std::unique_ptr<Kernel>> load(const CodeObject& object, const KernelSpec& spec, const KernelSource& source) override;
    Status launch(Kernel& kernel, const kernel::ForwardParameters& parameters, void* stream) override;
    Status launch(Kernel& kernel, const kernel::PackedParameters& parameters, void* stream) override { return launch_tiles(kernel, parameters, stream); }
    Status launch(Kernel& kernel, const kernel::DecodeParameters& given, void* stream) override {
        const auto& amd_kernel = static_cast<const AmdKernel&>(kernel);
        kernel::DecodeParameters parameters = given;
        return launch_blocks(amd_kernel, decode_units(amd_kernel.spec, parameters), &parameters, stream);
    }
    Status launch(Kernel& kernel, const kernel::AppendParameters& given, void* stream) override {
        kernel::AppendParameters parameters = given;
        return launch_blocks(static_cast<const AmdKernel&>(kernel), kernel::append_blocks(parameters), &parameters, stream);
    }
    Status launch(Kernel& kernel, const kernel::BackwardParameters& parameters, void* stream) override { return launch_tiles(kernel, parameters, stream); }
    Result<std::vector<double>> time_us(int launches, const std::function<Status()>& before, const std::function<Status()>& launch) override;
    Result<int> resident_blocks(Kernel& kernel) override;

private:
    template <class Body>
    Status run(Body&& body) {
        Current current(hip_);
        TILEWRIGHT_RETURN_IF_ERROR(current.set(index_));
        return body();
    }
    template <class Parameters> Status launch_tiles(Kernel& kernel, const Parameters& given, void* stream);
    Status launch_blocks(const AmdKernel& kernel, int blocks, void* argument, void* stream) {
        if (blocks == 0) return {};
        return run([&] {
            int result = hip_.ModuleLaunchKernel(kernel.function, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(kernel.threads), 1, 1,
                                                 static_cast<unsigned>(kernel.shared_bytes), static_cast<Stream>(stream), &argument, nullptr);
            return hip_.check("hipModuleLaunchKernel", result);
        });
    }
    // The value that `body` sets, if it succeeds.
    template <class T, class Body>
    Result<T> produce(Body&& body) {
        T value{};
        Status status = run([&] { return body(value); });
        if (!status.ok()) return status;
        return value;
    }
    const Hip& hip_;
    const int index_;
    const DeviceInfo info_;
};

size_t parameter_bytes(const KernelSpec& spec) {
    if (spec.kind == KernelKind::append) return sizeof(kernel::AppendParameters);
    if (spec.kind == KernelKind::attention_decode) return sizeof(kernel::DecodeParameters);
    if (is_backward(spec.kind)) return takes_whole_parameters(spec) ? sizeof(kernel::BackwardParameters) : sizeof(kernel::PlainBackwardParameters);
    return spec.problem.packed ? sizeof(kernel::PackedParameters) : sizeof(kernel::ForwardParameters);
}

// The code must be for this device, and its kernel must take what `launch` hands over.
Status check_object(const CodeObject& object, const std::string& entry, const std::string& arch, size_t parameter_bytes) {
    TILEWRIGHT_ASSIGN_OR_RETURN(ParsedObject parsed, read_code_object(object.bytes));
    if (parsed.arch != arch) return {StatusCode::unsupported, "machine code for " + parsed.arch + " does not run on " + arch};
    for (const KernelCode& kernel : parsed.kernels) {
        if (kernel.name != entry) continue;
        auto wanted = static_cast<int64_t>(parameter_bytes);
        if (kernel.argument_bytes == wanted) return {};
        return {StatusCode::internal, entry + " takes " + std::to_string(kernel.argument_bytes) + " bytes of arguments; it is given " + std::to_string(wanted)};
    }
    return invalid_argument("the code object has no kernel '" + entry + "'");
}

Result<std::unique_ptr<Kernel>> AmdDevice::load(const CodeObject& object, const KernelSpec& spec, const KernelSource& source) {
    TILEWRIGHT_RETURN_IF_ERROR(check_object(object, source.entry, info_.arch.name, parameter_bytes(spec)));
    auto kernel = std::make_unique<AmdKernel>(hip_, spec, source);
    Status loaded = run([&]() -> Status {
        TILEWRIGHT_HIP(hip_, ModuleLoadData, &kernel->module, object.bytes.data());
        TILEWRIGHT_HIP(hip_, ModuleGetFunction, &kernel->function, kernel->module, source.entry.c_str());
        return {};
    });
    if (!loaded.ok()) return loaded;
    return std::unique_ptr<Kernel>(std::move(kernel));
}

Status AmdDevice::launch(Kernel& kernel, const kernel::ForwardParameters& given, void* stream) {
    const auto& amd_kernel = static_cast<const AmdKernel&>(kernel);
    kernel::ForwardParameters parameters = given;
    fill_work_order(amd_kernel.spec, parameters, info_.arch.dies);
    parameters.tiles_dealt = nullptr;  // one block a tile: none is dealt
    for (parameters.phase = 0; parameters.phase < phases_of(amd_kernel.spec.kind); ++parameters.phase)
        TILEWRIGHT_RETURN_IF_ERROR(launch_blocks(amd_kernel, parameters.tiles, &parameters, stream));
    return {};
}

template <class Parameters>
Status AmdDevice::launch_tiles(Kernel& kernel, const Parameters& given, void* stream) {
    const auto& amd_kernel = static_cast<const AmdKernel&>(kernel);
    Parameters parameters = given;
    fill_work_order(amd_kernel.spec, parameters, info_.arch.dies);
    parameters.forward.tiles_dealt = nullptr;
    return launch_blocks(amd_kernel, parameters.forward.tiles, &parameters, stream);
}

Result<std::vector<double>> AmdDevice::time_us(int launches, const std::function<Status()>& before, const std::function<Status()>& launch) {
    return produce<std::vector<double>>([&](std::vector<double>& times) -> Status {
        Events events(hip_);
        std::vector<std::pair<Event, Event>> spans;
        for (int i = 0; i < launches; ++i) {
            if (before) TILEWRIGHT_RETURN_IF_ERROR(before());
            TILEWRIGHT_ASSIGN_OR_RETURN(Event start, events.record());
            TILEWRIGHT_RETURN_IF_ERROR(launch());
            TILEWRIGHT_ASSIGN_OR_RETURN(Event end, events.record());
            spans.emplace_back(start, end);
        }
        for (auto [start, end] : spans) {
            float milliseconds = 0;
            TILEWRIGHT_HIP(hip_, EventSynchronize, end);
            TILEWRIGHT_HIP(hip_, EventElapsedTime, &milliseconds, start, end);
            times.push_back(1e3 * static_cast<double>(milliseconds));
        }
        return {};
    });
}

Result<int> AmdDevice::resident_blocks(Kernel& kernel) {
    const auto& amd_kernel = static_cast<const AmdKernel&>(kernel);
    return produce<int>([&](int& blocks) {
        int result = hip_.ModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, amd_kernel.function, amd_kernel.threads,
                                                                          static_cast<size_t>(amd_kernel.shared_bytes));
        return hip_.check("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", result);
    });
}

// Generations whose newer members run the same instructions: the row of one serves, by the other's name.
const Arch* nearest_arch(std::string_view name) {
    if (const Arch* arch = find_arch(name)) return arch;
    for (auto [prefix, row] : {std::pair("gfx94", "gfx942"), std::pair("gfx110", "gfx1101"), std::pair("gfx115", "gfx1151"), std::pair("gfx120", "gfx1200")})
        if (name.starts_with(prefix)) return find_arch(row);
    return nullptr;
}

std::string version_text(int version) {
    return "HIP " + std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100) + "." + std::to_string(version % 100000);
}

}  // namespace

Result<DeviceInfo> describe_device(const Hip& hip, int index) {
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string target, hip.device_arch(index));
    std::string name = target.substr(0, target.find(':'));
    const Arch* row = nearest_arch(name);
    if (!row) return Status(StatusCode::unsupported, "device amd:" + std::to_string(index) + " is a " + name + ", for which there are no kernels");
    char product[256] = {};
    int version = 0;
    TILEWRIGHT_HIP(hip, DeviceGetName, product, static_cast<int>(sizeof product) - 1, index);
    TILEWRIGHT_HIP(hip, RuntimeGetVersion, &version);
    DeviceInfo info{"amd:" + std::to_string(index), product[0] ? product : target, *row, version_text(version)};
    info.arch.name = name;
    Status failed;
    auto value = [&](int number) {
        int result = 0;
        if (Status status = hip.check("hipDeviceGetAttribute", hip.DeviceGetAttribute(&result, number, index)); !status.ok()) failed = status;
        return result;
    };
    Arch& arch = info.arch;
    int units = value(attribute::units);
    double more_units = static_cast<double>(units) / arch.units;
    arch.units = units;
    arch.dies = std::max(1, static_cast<int>(std::lround(arch.dies * more_units)));  // a partition of an MI300 has some of them
    arch.matrix_tflops_16bit *= more_units, arch.matrix_tflops_32bit *= more_units;
    arch.max_threads_per_block = value(attribute::max_threads_per_block);
    arch.shared_bytes_per_block = value(attribute::shared_bytes_per_block);
    arch.l2_bytes = value(attribute::l2_bytes);
    arch.last_level_cache_bytes = std::max(arch.last_level_cache_bytes, arch.l2_bytes);
    arch.clock_ghz = value(attribute::clock_khz) * 1e-6;
    int warp_size = value(attribute::warp_size);
    info.pci = pci_address(value(attribute::pci_domain), value(attribute::pci_bus), value(attribute::pci_device));
    if (!failed.ok()) return failed;
    if (warp_size != arch.warp_size)
        return Status(StatusCode::unsupported,
                      info.id + " runs waves of " + std::to_string(warp_size) + "; the kernels of " + name + " need " + std::to_string(arch.warp_size));
    return info;
}

Result<std::unique_ptr<Device>> open_device(const Hip& hip, int index) {
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceInfo info, describe_device(hip, index));
    return std::unique_ptr<Device>(std::make_unique<AmdDevice>(hip, index, std::move(info)));
}

}  // namespace tilewright::amd
