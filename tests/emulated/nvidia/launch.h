// Launches of emulated kernels of NVIDIA's arch headers.
#pragma once
#include "nvidia/cuda.h"
// Before the kernels.
#include "spec.h"

namespace tilewright::emulated {

// On a device for three blocks at once.
constexpr int most_blocks = 3;
template <class Arch>
gpu::Launch launch_of(int blocks, int shared_bytes, int order) {
    gpu::Launch launch;
    launch.blocks = blocks, launch.resident = most_blocks, launch.threads = Arch::threads, launch.shared_bytes = shared_bytes, launch.schedule = gpu::schedule_of(order);
    launch.bf16 = type_of(typename Arch::Config::Element{}) == Type::bf16;
    return launch;
}

}  // namespace tilewright::emulated
