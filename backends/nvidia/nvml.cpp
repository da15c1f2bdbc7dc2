// Reading clocks, temperature, energy, throttling and processes through NVML.
#include "backends/nvidia/nvml.h"

#include <vector>

#include "backends/shared_library.h"

namespace tilewright::nvidia {
namespace {

// nvml.h's, as far as they are used.
using Handle = void*;
constexpr int success = 0, insufficient_size = 7;
constexpr int clock_sm = 1, clock_memory = 2, temperature_gpu = 0;
constexpr struct {
    unsigned long long bit;
    const char* word;
} reasons[] = {{0x4, "power"}, {0x8, "hardware"}, {0x20, "heat"}, {0x40, "heat"}, {0x80, "power brake"}};
struct Process {  // nvmlProcessInfo_t, second version
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(Process) == 24);

struct Functions {
    int (*init)();
    int (*shutdown)();
    const char* (*error_text)(int);
    int (*handle)(const char* pci, Handle*);
    int (*clock)(Handle, int type, unsigned* mhz);
    int (*temperature)(Handle, int sensor, unsigned* celsius);
    int (*throttle_reasons)(Handle, unsigned long long*);
    int (*energy)(Handle, unsigned long long* millijoules);
    int (*processes)(Handle, unsigned* count, Process*);

    Status bind(const SharedLibrary& library) {
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvmlInit_v2", init));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvmlShutdown", shutdown));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvmlErrorString", error_text));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvmlDeviceGetHandleByPciBusId_v2", handle));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvmlDeviceGetClockInfo", clock));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvmlDeviceGetTemperature", temperature));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvmlDeviceGetCurrentClocksThrottleReasons", throttle_reasons));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvmlDeviceGetTotalEnergyConsumption", energy));
        return library.bind("nvmlDeviceGetComputeRunningProcesses_v3", processes);
    }
};

class Nvml : public DeviceMonitor {
public:
    Nvml(SharedLibrary library, const Functions& functions, Handle device) : library_(std::move(library)), functions_(functions), device_(device) {}
    ~Nvml() override { functions_.shutdown(); }

    DeviceState read() override {
        DeviceState state;
        unsigned value = 0;
        unsigned long long bits = 0;
        if (functions_.clock(device_, clock_sm, &value) == success) state.clock_mhz = value;
        if (functions_.clock(device_, clock_memory, &value) == success) state.memory_clock_mhz = value;
        if (functions_.temperature(device_, temperature_gpu, &value) == success) state.temperature_c = value;
        state.energy_j = read_energy_j();
        if (functions_.throttle_reasons(device_, &bits) == success)
            for (const auto& [bit, word] : reasons)
                if ((bits & bit) != 0 && state.throttled.find(word) == std::string::npos) state.throttled += (state.throttled.empty() ? "" : ", ") + std::string(word);
        state.others = other_processes();
        return state;
    }

    double read_energy_j() override {
        unsigned long long millijoules = 0;
        return functions_.energy(device_, &millijoules) == success ? static_cast<double>(millijoules) / 1e3 : -1;
    }

private:
    // One of those listed is this one, whatever its number is called outside a container.
    int other_processes() const {
        std::vector<Process> list(64);
        auto count = static_cast<unsigned>(list.size());
        const int result = functions_.processes(device_, &count, list.data());
        if (result != success && result != insufficient_size) return -1;
        return count > 0 ? static_cast<int>(count) - 1 : 0;
    }

    SharedLibrary library_;
    Functions functions_;
    Handle device_;
};

}  // namespace

Result<std::unique_ptr<DeviceMonitor>> open_nvml(const std::string& library_name, const std::string& pci) {
    TILEWRIGHT_ASSIGN_OR_RETURN(SharedLibrary library, SharedLibrary::open(library_name));
    Functions functions{};
    TILEWRIGHT_RETURN_IF_ERROR(functions.bind(library));
    const auto failed = [&](const char* what, int code) { return Status(StatusCode::unavailable, library.path() + ": " + what + ": " + functions.error_text(code)); };
    if (const int code = functions.init(); code != success) return failed("it cannot be used", code);
    Handle device = nullptr;
    if (const int code = functions.handle(pci.c_str(), &device); code != success) {
        functions.shutdown();
        return failed(("device " + pci).c_str(), code);
    }
    return std::unique_ptr<DeviceMonitor>(std::make_unique<Nvml>(std::move(library), functions, device));
}

}  // namespace tilewright::nvidia
