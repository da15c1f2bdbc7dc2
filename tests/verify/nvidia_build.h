// Builds a kernel for the machine's first NVIDIA device and loads it.
#pragma once
#include <memory>
#include <optional>

#include "backends/nvidia/nvidia_backend.h"
#include "verify/device_workload.h"

namespace tilewright::test {

// The first device's architecture; nothing where there is no device.
inline std::optional<Arch> nvidia_arch() {
    auto devices = nvidia_backend().devices();
    if (!devices.ok() || devices->empty()) return std::nullopt;
    return (*devices)[0].arch;
}

// The kernel of a forward workload.
inline KernelSpec spec_of(const Workload& workload, const Config& config) {
    CallTraits traits = traits_of(workload);
    return {KernelKind::attention_forward, workload.problem, config, traits.aligned, traits.rescaled};
}

struct Built {
    KernelSource source;
    CodeObject object;
};
inline Result<Built> build(const KernelSpec& spec, const Arch& arch) {
    TILEWRIGHT_ASSIGN_OR_RETURN(KernelSource source, generate(spec, arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(CodeObject object, nvidia_backend().compile(source, arch));
    return Built{std::move(source), std::move(object)};
}
inline Result<std::unique_ptr<Kernel>> build_and_load(Device& device, const KernelSpec& spec) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Built built, build(spec, device.info().arch));
    return device.load(built.object, spec, built.source);
}

}  // namespace tilewright::test
