// The table of architectures, and the row of the machine's own processor.
#include "backends/arch.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "backends/cpu/cpu_features.h"

namespace tilewright {
namespace {

constexpr int64_t KiB = 1024, MiB = 1024 * KiB;

const Arch table[] = {
#define TILEWRIGHT_ARCH(...) Arch{__VA_ARGS__},
#include "backends/archs.inc"
#undef TILEWRIGHT_ARCH
};

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

struct Caches {
    int64_t l1 = 32 * KiB, l2 = 512 * KiB, l3 = 0;  // of one core; the defaults serve where /sys tells nothing
};
Caches read_caches() {
    Caches caches;
    for (int index = 0; index < 8; ++index) {
        std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/", size = first_line(folder + "size");
        if (size.empty() || first_line(folder + "type") == "Instruction") continue;
        char* unit = nullptr;
        int64_t bytes = std::strtoll(size.c_str(), &unit, 10) * (*unit == 'M' ? MiB : *unit == 'K' ? KiB : 1);
        std::string level = first_line(folder + "level");
        if (bytes > 0) (level == "1" ? caches.l1 : level == "2" ? caches.l2 : caches.l3) = bytes;
    }
    return caches;
}

double clock_ghz() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line) && !line.empty();)
        if (line.starts_with("cpu MHz"))
            if (double mhz = std::atof(line.c_str() + std::min(line.find(':') + 1, line.size())); mhz > 0) return mhz / 1000;
    return 2;
}

int usable_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
    return std::max(1u, std::thread::hardware_concurrency());
}

// A block is one thread, and caches play the part of shared memory: a tile's scratch must fit the core's L2.
Arch describe_cpu() {
    Caches caches = read_caches();
    const CpuFeatures& features = cpu_features();
    Arch arch;
    arch.name = arch.backend = "cpu";
    arch.units = usable_cores();
    arch.shared_bytes_per_block = arch.shared_bytes_per_unit = caches.l2;
    arch.l1_bytes = caches.l1, arch.l2_bytes = caches.l2;
    arch.last_level_cache_bytes = std::max(caches.l2, caches.l3);
    arch.clock_ghz = clock_ghz();
    // Rates are estimates from the vector width: two fused multiply-adds a cycle, an exponential in about 12 vector
    // operations, and the 12 GB/s that the line buffers of one core sustain.
    int lanes = features.vector_floats;
    arch.matrix_tflops_32bit = arch.units * arch.clock_ghz * lanes * 4 / 1000;
    arch.matrix_tflops_16bit = arch.matrix_tflops_32bit * (features.bf16_dot ? 2 : 1);
    arch.exponentials_per_cycle_per_unit = lanes / 6.0;
    arch.memory_gbps = 12.0 * arch.units;
    return arch;
}

}  // namespace

std::span<const Arch> known_archs() { return table; }

const Arch* find_arch(std::string_view name) {
    static const Arch cpu = describe_cpu();
    if (name == cpu.name) return &cpu;
    for (const Arch& arch : table)
        if (name == arch.name) return &arch;
    return nullptr;
}

}  // namespace tilewright
