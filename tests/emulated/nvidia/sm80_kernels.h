// Makes emulated forward kernels of kernels/arch/sm80.h.
#pragma once
#include "nvidia/cuda.h"
// Before the kernels.
#include "kernels/arch/sm80.h"
#include "kernels/attention_forward.h"
#include "packed.h"
#include "spec.h"

namespace tilewright::emulated {

// As backends/nvidia launches it, on a device for three blocks at once.
template <class Arch, class Parameters>
std::string run_sm80(const Parameters& parameters, int order) {
    using Config = typename Arch::Config;
    constexpr int most_blocks = 3;
    typename Arch::Arguments arguments{parameters};
    const kernel::ForwardParameters& p = kernel::forward_of(parameters);
    gpu::Launch launch;
    launch.blocks = Config::persistent ? std::min(p.tiles, most_blocks) : p.tiles, launch.resident = most_blocks;
    launch.threads = Arch::threads, launch.shared_bytes = Arch::shared_bytes, launch.schedule = gpu::schedule_of(order);
    return gpu::run(launch, [&](char* shared) { kernel::attention_forward<Arch>(arguments, shared); });
}

template <class Element, Spec s>
EmulatedKernel sm80_kernel(const char* name) {
    return describe<Element, s>(name, run_sm80<kernel::Sm80<ConfigOf<Element, s>>, kernel::ForwardParameters>);
}
template <Spec s>
PackedKernel sm80_packed_kernel(const char* problem) {
    return {problem, s.block_q, s.packs_heads, run_sm80<kernel::Sm80<ConfigOf<kernel::bf16, s>>, kernel::PackedParameters>};
}

}  // namespace tilewright::emulated
