// A loaded kernel of a device, and the check of what it is given.
#pragma once
#include "backends/backend.h"
#include "backends/nvidia/driver.h"

namespace tilewright::nvidia {

struct NvidiaKernel : Kernel {
    NvidiaKernel(const Driver& driver, Context context, const KernelSpec& spec, const KernelSource& source);
    ~NvidiaKernel() override;
    NvidiaKernel(const NvidiaKernel&) = delete;
    NvidiaKernel& operator=(const NvidiaKernel&) = delete;

    // Loads the machine code, whose kernel must take what this host hands over. The device's context must be current.
    Status load(const CodeObject& object, const Arch& arch);
    // Status of the first tensor whose address or strides are no multiples of 16 bytes, if the kernel relies on that.
    Status check_alignment(const kernel::ForwardParameters& parameters) const;
    Status check_alignment(const kernel::PlainBackwardParameters& parameters) const;
    Status check_alignment(const kernel::AppendParameters& parameters) const;

    const Driver& driver;
    const Context context;
    const KernelSpec spec;
    const std::string entry;
    const unsigned threads;
    const unsigned shared_bytes;  // dynamic
    bool takes_maps = false;
    int resident_blocks = 0;      // of a multiprocessor
    Module module = nullptr;
    Function function = nullptr;

private:
    struct Operand {
        const char* name;
        const void* address;
        const kernel::Strides& strides;
    };
    Status check_alignment(std::initializer_list<Operand> operands) const;
};

}  // namespace tilewright::nvidia
