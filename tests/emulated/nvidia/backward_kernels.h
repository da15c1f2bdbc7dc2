// Makes emulated backward kernels of NVIDIA's arch headers.
#pragma once
#include "nvidia/launch.h"
// Before the kernels.
#include "backward.h"
#include "kernels/arch/nvidia_backward_rows.h"
#include "kernels/attention_backward_bias.h"
#include "kernels/attention_backward_rows.h"

namespace tilewright::emulated {

// The kernels that go row by row.
template <class Config>
std::string run_rows(Pass pass, const kernel::BackwardParameters& p, int order) {
    using Rows = kernel::NvidiaBackwardRows<Config>;
    typename Rows::Arguments arguments{p};
    return gpu::run(launch_of<Rows>(p.forward.tiles, 0, order), [&](char*) {
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
    return {name, backward_problem<Element, s>(), s.aligned, s.block_q, s.block_kv, run, s.dq, true, false, s.persistent};
}

}  // namespace tilewright::emulated
