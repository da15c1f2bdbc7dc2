// Makes emulated backward kernels of AMD's arch headers.
#pragma once
#include "amd_builtins.h"
#include "backward.h"
#include "kernels/arch/amd_backward.h"
#include "kernels/arch/amd_backward_rows.h"
#include "kernels/attention_backward_bias.h"
#include "kernels/attention_backward_rows.h"
#include "spec.h"

namespace tilewright::emulated {

// As one block after another; LDS starts as NaN each time.
template <class Arch, class Body>
std::string run_blocks(const kernel::BackwardParameters& parameters, int wave, int order, Body&& body) {
    alignas(64) static char shared[Arch::shared_bytes];
    typename Arch::Arguments arguments{parameters};
    for (int i = 0; i < parameters.forward.tiles; ++i) {
        std::memset(shared, 0xff, sizeof shared);
        run_block(i, Arch::threads, wave, Order(order), [&] { body(arguments, shared); });
    }
    return "";
}

template <template <class> class Family, class Element, Spec s, int wave, bool flushes>
std::string run_backward(Pass pass, const kernel::BackwardParameters& p, int order) {
    flushes_fp16_subnormals = flushes;
    auto run = [&]<Pass which> {
        using Arch = kernel::AmdBackward<Family, BackwardConfigOf<Element, s, which>>;
        return run_blocks<Arch>(p, wave, order, [](auto& arguments, char* shared) { kernel::backward_pass<Arch>(arguments, shared); });
    };
    using Rows = kernel::AmdBackwardRows<BackwardConfigOf<Element, s, Pass::queries>, wave>;
    switch (pass) {
        case Pass::prologue: return run_blocks<Rows>(p, wave, order, [](auto& arguments, char* shared) { kernel::attention_backward_prologue<Rows>(arguments, shared); });
        case Pass::keys: return run.template operator()<Pass::keys>();
        case Pass::keys_alone: return run.template operator()<Pass::keys_alone>();
        case Pass::values_alone: return run.template operator()<Pass::values_alone>();
        case Pass::queries: return run.template operator()<Pass::queries>();
        case Pass::bias:
            if constexpr (s.bias) {
                using Arch = kernel::AmdBackward<Family, BackwardConfigOf<Element, s, Pass::bias>>;
                return run_blocks<Arch>(p, wave, order, [](auto& arguments, char* shared) { kernel::attention_backward_bias<Arch>(arguments, shared); });
            }
            break;
        case Pass::epilogue: break;
        case Pass::sink: return run_blocks<Rows>(p, wave, order, [](auto& arguments, char* shared) { kernel::attention_backward_sink<Rows>(arguments, shared); });
    }
    return "there is no such kernel";
}

template <template <class> class Family, class Element, Spec s, int wave, bool flushes = false>
EmulatedBackward amd_backward(const char* name) {
    return {name, backward_problem<Element, s>(), s.aligned, s.block_q, s.block_kv, run_backward<Family, Element, s, wave, flushes>};
}

}  // namespace tilewright::emulated
