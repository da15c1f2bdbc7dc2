// Architectures as data: limits and rates that occupancy, resources and the model are computed from.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tilewright {

// Which header of kernels/arch serves an architecture.
enum class Family { cpu, sm80, sm90, cdna, rdna3, rdna4 };

// One architecture, from archs.inc (the CPU's row is filled in from the machine). A live device overrides what it reports itself.
struct Arch {
    std::string name;     // "sm_90a", "gfx942", "cpu"
    std::string backend;  // "nvidia", "amd", "cpu"
    Family family = Family::cpu;
    int warp_size = 1;                   // lanes of a warp (wave)
    int units = 1;                       // multiprocessors, compute units, work group processors (RDNA), cores
    int max_threads_per_block = 1;
    int max_warps_per_unit = 1;
    int max_blocks_per_unit = 1;
    int64_t registers_per_unit = 0;      // 32-bit, all lanes; 0: not a limit
    int max_registers_per_thread = 0;
    int register_granularity = 1;        // registers are given out to a warp in multiples of this many per lane
    int simds_per_unit = 1;              // schedulers among which warps are divided
    int64_t shared_bytes_per_block = 0;  // largest a kernel may ask for
    int64_t shared_bytes_per_unit = 0;
    int64_t shared_granularity = 1;
    int64_t shared_reserved_per_block = 0;  // the system's own, on top of what a kernel asks for
    int dies = 1;                        // that get a launch's blocks in turn, each with an L2 of its own
    int64_t l1_bytes = 0;
    int64_t l2_bytes = 0;                // of a die
    int64_t last_level_cache_bytes = 0;  // what a cold-cache measurement must flush
    double memory_gbps = 0;              // 1e9 bytes a second
    double matrix_tflops_16bit = 0;      // dense bf16/fp16 products, float accumulation
    double matrix_tflops_32bit = 0;
    double exponentials_per_cycle_per_unit = 0;
    double clock_ghz = 0;
};

// The rows of archs.inc: every architecture that kernels compile for without a device.
std::span<const Arch> known_archs();
// Null if the name is unknown. "cpu" is this machine's processor.
const Arch* find_arch(std::string_view name);

}  // namespace tilewright
