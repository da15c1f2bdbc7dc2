// Compute capabilities, limits and names, as the driver tells them.
#include "backends/nvidia/device_arch.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace tilewright::nvidia {
namespace {

struct Capability {
    int major = 0, minor = 0;
    bool specific = false;  // "a": runs on nothing else
};

// "sm_90a" -> 9, 0, true; the last digit is the minor version.
Capability parse(const std::string& arch) {
    int number = arch.starts_with("sm_") ? std::atoi(arch.c_str() + 3) : 0;
    return {number / 10, number % 10, arch.ends_with("a")};
}

bool runs_on(const Capability& code, int major, int minor) {
    return code.major == major && (code.specific ? code.minor == minor : code.minor <= minor);
}

Arch base_arch(int major, int minor) {
    const Arch* best = nullptr;
    for (const Arch& arch : known_archs())
        if (arch.backend == "nvidia" && runs_on(parse(arch.name), major, minor) && (!best || parse(arch.name).minor > parse(best->name).minor)) best = &arch;
    if (best) return *best;
    Arch arch = *find_arch("sm_80");
    arch.name = "sm_" + std::to_string(major * 10 + minor);
    return arch;
}

std::string driver_text(int version) {
    std::string cuda = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10), kernel_module;
    std::ifstream("/sys/module/nvidia/version") >> kernel_module;
    return kernel_module.empty() ? cuda : kernel_module + " (" + cuda + ")";
}

}  // namespace

Status check_runs_on(const std::string& code_arch, int major, int minor) {
    if (runs_on(parse(code_arch), major, minor)) return {};
    std::string capability = std::to_string(major) + "." + std::to_string(minor);
    return {StatusCode::unsupported, "machine code for " + code_arch + " does not run on a device of compute capability " + capability};
}

Result<DeviceInfo> describe_device(const Driver& driver, int index) {
    DeviceHandle device = 0;
    TILEWRIGHT_RETURN_IF_ERROR(driver.device_get(&device, index));
    char name[256] = {};
    TILEWRIGHT_RETURN_IF_ERROR(driver.device_name(name, (int)sizeof name - 1, device));
    Status failed;
    auto value = [&](int number) {
        int result = 0;
        if (Status status = driver.device_attribute(&result, number, device); !status.ok()) failed = status;
        return result;
    };
    int major = value(attribute::compute_major), minor = value(attribute::compute_minor);
    DeviceInfo info{"nvidia:" + std::to_string(index), name, base_arch(major, minor), driver_text(driver.version())};
    Arch& arch = info.arch;
    int units = value(attribute::multiprocessors);
    double more_units = arch.units > 0 ? (double)units / arch.units : 1;
    arch.units = units;
    arch.matrix_tflops_16bit *= more_units, arch.matrix_tflops_32bit *= more_units;
    arch.warp_size = value(attribute::warp_size);
    arch.max_threads_per_block = value(attribute::max_threads_per_block);
    arch.max_warps_per_unit = value(attribute::max_threads_per_multiprocessor) / std::max(1, arch.warp_size);
    arch.max_blocks_per_unit = value(attribute::blocks_per_multiprocessor);
    arch.registers_per_unit = value(attribute::registers_per_multiprocessor);
    arch.shared_bytes_per_block = value(attribute::shared_per_block);
    arch.shared_bytes_per_unit = value(attribute::shared_per_multiprocessor);
    arch.shared_reserved_per_block = value(attribute::shared_reserved);
    arch.l2_bytes = arch.last_level_cache_bytes = value(attribute::l2_bytes);
    // Two transfers a clock; some drivers report no memory clock.
    double bandwidth = 2.0 * value(attribute::memory_clock_khz) * 1e3 * value(attribute::bus_bits) / 8 * 1e-9;
    if (bandwidth > 0) arch.memory_gbps = bandwidth;
    info.pci = pci_address(value(attribute::pci_domain), value(attribute::pci_bus), value(attribute::pci_device));
    if (!failed.ok()) return failed;
    return info;
}

}  // namespace tilewright::nvidia
