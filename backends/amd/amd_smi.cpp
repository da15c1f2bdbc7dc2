// Reading clocks, temperature and energy through AMD SMI.
#include "backends/amd/amd_smi.h"

#include <cstdio>

#include "backends/amd/rocm_library.h"

namespace tilewright::amd {
namespace {

// amdsmi.h's, as far as they are used and have been the same since ROCm 6.0.
using Handle = void*;
constexpr int success = 0;
constexpr uint64_t gpus = 2;
constexpr int clock_compute = 0, clock_memory = 4, sensor_hottest = 1, metric_now = 0;
struct Clock {  // amdsmi_clk_info_t, whose first member is what it is now
    uint32_t mhz, rest[31];
};

struct Functions {
    int (*init)(uint64_t flags);
    int (*shut_down)();
    int (*error_text)(int status, const char** text);
    int (*handle)(uint64_t address, Handle*);
    int (*clock)(Handle, int type, Clock*);
    int (*temperature)(Handle, int sensor, int metric, int64_t* celsius);
    int (*energy)(Handle, uint64_t* count, float* microjoules_each, uint64_t* time);

    Status bind(const SharedLibrary& library) {
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("amdsmi_init", init));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("amdsmi_shut_down", shut_down));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("amdsmi_status_code_to_string", error_text));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("amdsmi_get_processor_handle_from_bdf", handle));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("amdsmi_get_clock_info", clock));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("amdsmi_get_temp_metric", temperature));
        return library.bind("amdsmi_get_energy_count", energy);
    }
};

class AmdSmi : public DeviceMonitor {
public:
    AmdSmi(SharedLibrary library, const Functions& functions, Handle device) : library_(std::move(library)), functions_(functions), device_(device) {}
    ~AmdSmi() override { functions_.shut_down(); }

    DeviceState read() override {
        DeviceState state;
        Clock clock{};
        int64_t celsius = 0;
        if (functions_.clock(device_, clock_compute, &clock) == success) state.clock_mhz = clock.mhz;
        if (functions_.clock(device_, clock_memory, &clock) == success) state.memory_clock_mhz = clock.mhz;
        if (functions_.temperature(device_, sensor_hottest, metric_now, &celsius) == success) state.temperature_c = static_cast<double>(celsius);
        state.energy_j = read_energy_j();
        return state;
    }

    double read_energy_j() override {
        uint64_t count = 0, time = 0;
        float microjoules = 0;
        return functions_.energy(device_, &count, &microjoules, &time) == success ? static_cast<double>(count) * microjoules / 1e6 : -1;
    }

private:
    SharedLibrary library_;
    Functions functions_;
    Handle device_;
};

}  // namespace

Result<std::unique_ptr<DeviceMonitor>> open_amd_smi(const std::string& pci) {
    TILEWRIGHT_ASSIGN_OR_RETURN(SharedLibrary library, open_rocm_library("TILEWRIGHT_AMD_SMI_LIBRARY", {"libamd_smi.so"}));
    Functions functions{};
    TILEWRIGHT_RETURN_IF_ERROR(functions.bind(library));
    const auto failed = [&](const std::string& what, int status) {
        const char* text = nullptr;
        if (functions.error_text(status, &text) != success || text == nullptr) text = "an unknown error";
        return Status(StatusCode::unavailable, library.path() + ": " + what + ": " + text);
    };
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    if (std::sscanf(pci.c_str(), "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) return Status(StatusCode::unavailable, "'" + pci + "' is no PCI address");
    if (const int status = functions.init(gpus); status != success) return failed("it cannot be used", status);
    Handle device = nullptr;
    // Function in three bits, slot in five, bus in eight, then the domain.
    if (const int status = functions.handle(function | slot << 3 | bus << 8 | uint64_t{domain} << 16, &device); status != success) {
        functions.shut_down();
        return failed("device " + pci, status);
    }
    return std::unique_ptr<DeviceMonitor>(std::make_unique<AmdSmi>(std::move(library), functions, device));
}

}  // namespace tilewright::amd
