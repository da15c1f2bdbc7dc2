// Makes emulated backward kernels of NVIDIA's arch headers.
#pragma once
#include "nvidia/cuda.h"
// Before the kernels.
#include "backward.h"
#include "kernels/arch/nvidia_backward_rows.h"
#include "kernels/attention_backward_bias.h"
#include "kernels/attention_backward_rows.h"
#include "spec.h"

namespace tilewright::emulated {

template <class Arch>
gpu::Launch backward_launch(int blocks, int shared_bytes, int order) {
    gpu::Launch launch;
    launch.blocks = blocks, launch.resident = 3, launch.threads = Arch::threads, launch.shared_bytes = shared_bytes, launch.schedule = gpu::schedule_of(order);
    launch.bf16 = type_of(typename Arch::Element{}) == Type::bf16;
    return launch;
}

// The kernels that go row by row.
template <class Config>
std::string run_rows(Pass pass, const kernel::BackwardParameters& p, int order) {
    using Rows = kernel::NvidiaBackwardRows<Config>;
    typename Rows::Arguments arguments{p};
    return gpu::run(backward_launch<Rows>(p.forward.tiles, 0, order), [&](char*) {
        if (pass == Pass::prologue) kernel::attention_backward_prologue<Rows>(arguments, nullptr);
        else if (pass == Pass::sink) kernel::attention_backward_sink<Rows>(arguments, nullptr);
        else if constexpr (Config::dq != 0) kernel::attention_backward_epilogue<Rows>(arguments, nullptr);
    });
}

constexpr Spec swapped(Spec s) {
    int block_q = s.block_q;
    s.block_q = s.block_kv, s.block_kv = block_q;
    return s;
}

template <class Element, Spec s>
EmulatedBackward backward_kernels(const char* name, std::string (*run)(Pass, const kernel::BackwardParameters&, int)) {
    return {name, backward_problem<Element, s>(), s.aligned, s.block_q, s.block_kv, run, s.dq, true};
}

}  // namespace tilewright::emulated
