// Makes emulated forward kernels of kernels/arch/sm80.h.
#pragma once
#include "nvidia/launch.h"
// Before the kernels.
#include "kernels/arch/sm80.h"
#include "kernels/attention_forward.h"
#include "packed.h"

namespace tilewright::emulated {

// As backends/nvidia launches it.
template <class Arch, class Parameters>
std::string run_sm80(const Parameters& parameters, int order) {
    using Config = typename Arch::Config;
    typename Arch::Arguments arguments{parameters};
    const kernel::ForwardParameters& p = kernel::forward_of(parameters);
    return gpu::run(launch_of<Arch>(Config::persistent ? std::min(p.tiles, most_blocks) : p.tiles, Arch::shared_bytes, order), [&](char* shared) { kernel::attention_forward<Arch>(arguments, shared); });
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
