// What a vendor's stack must do for Tilewright: compile and inspect without a device, then load, launch and time on one.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/arch.h"
#include "backends/kernel_source.h"
#include "kernels/parameters.h"
#include "tilewright/status.h"

namespace tilewright {

struct CodeObject {
    std::string arch;
    std::string bytes;  // cubin, AMD code object or shared library
    std::string log;    // what the compiler said
};

// Read from the object itself, without a device. -1: not known for this architecture.
struct Resources {
    int registers = -1;  // per lane; VGPRs on AMD
    int accumulation_registers = -1;  // AGPRs
    int scalar_registers = -1;        // SGPRs
    int64_t shared_bytes = -1;        // static part
    int64_t local_bytes = -1;         // scratch per lane
    int64_t spill_bytes = -1;         // per lane
    int vector_spills = -1;           // registers per lane that were spilled (AMD)
    int scalar_spills = -1;           // ... per wave
    int warp_size = -1;               // lanes that the code was compiled for
    int matrix_instructions = -1;     // static count
    int vector_bits = -1;             // widest vector register used (CPU)
    std::vector<std::pair<std::string, int>> instructions;  // static counts by mnemonic group, e.g. {"hgmma", 128}
};

struct DeviceInfo {
    std::string id;    // "cpu:0", "nvidia:0"
    std::string name;  // as the vendor calls it
    Arch arch;         // the table's row with what the device reports in place
    std::string driver;
    std::string pci = {};  // its address as "00000000:3b:00.0"; empty: it has none, or it is not known
};
// As `pci` has it, of a device's numbers.
std::string pci_address(int domain, int bus, int device);

class Kernel {  // a loaded kernel; owned by the caller, must not outlive its Device
public:
    virtual ~Kernel() = default;
};

// An open device. Thread-safe unless said otherwise.
class Device {
public:
    virtual ~Device() = default;
    virtual const DeviceInfo& info() const = 0;

    virtual Result<void*> allocate(int64_t bytes) = 0;  // 256-byte aligned; contents undefined
    virtual Status free(void* address) = 0;
    virtual Status copy_to_device(void* to, const void* from, int64_t bytes) = 0;  // both copies are complete on return
    virtual Status copy_to_host(void* to, const void* from, int64_t bytes) = 0;
    virtual Status fill(void* to, unsigned char value, int64_t bytes) = 0;

    virtual Result<std::unique_ptr<Kernel>> load(const CodeObject& object, const KernelSpec& spec, const KernelSource& source) = 0;
    // Asynchronous on devices that are; `stream` is the vendor's handle, null the default one. The parameters' pointers are
    // the device's; scheduling fields (tiles, tiles_dealt, section_heads) are filled in here.
    virtual Status launch(Kernel& kernel, const kernel::ForwardParameters& parameters, void* stream) = 0;
    // Likewise for kernels compiled for packed sequences.
    virtual Status launch(Kernel&, const kernel::PackedParameters&, void*) { return {StatusCode::unsupported, info().id + " takes no packed sequences"}; }
    // Likewise for attention_decode; the units are the caller's (decode_plan.h).
    virtual Status launch(Kernel&, const kernel::DecodeParameters&, void*) { return {StatusCode::unsupported, info().id + " has no decoding"}; }
    // Likewise for append.
    virtual Status launch(Kernel&, const kernel::AppendParameters&, void*) { return {StatusCode::unsupported, info().id + " has no append"}; }
    // Likewise for the kernels of the backward, of which each is a launch of its own.
    virtual Status launch(Kernel&, const kernel::BackwardParameters&, void*) { return {StatusCode::unsupported, info().id + " has no backward"}; }
    virtual Status synchronize() = 0;
    // Times `launches` calls of `launch` one by one, each after `before` (not timed), in microseconds on the device's own clock.
    virtual Result<std::vector<double>> time_us(int launches, const std::function<Status()>& before, const std::function<Status()>& launch) = 0;
    // Resident blocks per unit as the vendor's own occupancy query says; unsupported where there is none.
    virtual Result<int> resident_blocks(Kernel& kernel) = 0;
};

class Backend {
public:
    virtual ~Backend() = default;
    virtual const char* name() const = 0;  // "cpu", "amd", "nvidia"
    // Compiler name, version and flags: part of the key of cached code and of the database's toolchain rows.
    virtual Result<std::string> toolchain() = 0;
    // Needs a compiler, no device. Thread-safe: the tuner compiles in parallel.
    virtual Result<CodeObject> compile(const KernelSource& source, const Arch& arch) = 0;
    virtual Result<Resources> inspect(const CodeObject& object) = 0;
    // unavailable, with the reason in one sentence, where the driver or library is absent.
    virtual Result<std::vector<DeviceInfo>> devices() = 0;
    virtual Result<std::unique_ptr<Device>> open(int index) = 0;
};

// All backends, the CPU first. They exist on every machine: drivers are opened when first asked for.
const std::vector<Backend*>& backends();
Result<Backend*> find_backend(std::string_view name);
// "cpu:0", "nvidia:1"; a bare backend name is its device 0.
Result<std::unique_ptr<Device>> open_device(std::string_view id);

}  // namespace tilewright
