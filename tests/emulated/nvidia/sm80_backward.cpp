// The backward's passes on sm_80 in emulation: by mma.sync and in plain floats, dK and dV together and apart.
#include "nvidia/backward_kernels.h"
// The families' headers after CUDA's builtins.
#include "kernels/arch/sm80_backward.h"

namespace tilewright::emulated {
namespace {

template <class Arch>
std::string run_pass(const kernel::BackwardParameters& p, int order) {
    typename Arch::Arguments arguments{p};
    return gpu::run(launch_of<Arch>(p.forward.tiles, Arch::shared_bytes, order), [&](char* shared) { kernel::backward_pass<Arch>(arguments, shared); });
}
template <class Element, Spec s>
std::string run(Pass pass, const kernel::BackwardParameters& p, int order) {
    using Keys = BackwardConfigOf<Element, s, Pass::keys>;
    switch (pass) {
        case Pass::keys: return run_pass<kernel::Sm80Backward<Keys>>(p, order);
        case Pass::keys_alone: return run_pass<kernel::Sm80Backward<BackwardConfigOf<Element, s, Pass::keys_alone>>>(p, order);
        case Pass::values_alone: return run_pass<kernel::Sm80Backward<BackwardConfigOf<Element, s, Pass::values_alone>>>(p, order);
        case Pass::queries: return run_pass<kernel::Sm80Backward<BackwardConfigOf<Element, swapped(s), Pass::queries>>>(p, order);
        case Pass::bias:
            if constexpr (s.bias) {
                using Arch = kernel::Sm80Backward<BackwardConfigOf<Element, swapped(s), Pass::bias>>;
                typename Arch::Arguments arguments{p};
                return gpu::run(launch_of<Arch>(p.forward.tiles, Arch::shared_bytes, order), [&](char* shared) { kernel::attention_backward_bias<Arch>(arguments, shared); });
            }
            return "there is no bias";
        default: return run_rows<Keys>(pass, p, order);
    }
}
template <class Element, Spec s>
EmulatedBackward kernels(const char* name) {
    return backward_kernels<Element, s>(name, run<Element, s>);
}

}  // namespace

std::vector<EmulatedBackward> sm80_backward() {
    using kernel::bf16;
    using kernel::fp16;
    using kernel::fp32;
    using kernel::Mask;
    return {
        kernels<bf16, Spec{.block_q = 32, .block_kv = 64, .stages = 2, .workers = 4, .mask = Mask::causal, .sink = true}>("sm80 d64 causal"),
        kernels<fp16, Spec{.head_dim = 40, .head_dim_v = 72, .block_q = 32, .block_kv = 64, .stages = 1, .workers = 2, .mask = Mask::window, .softcap = true, .alibi = true}>("sm80 d40 dv72 window variants"),
        kernels<bf16, Spec{.head_dim = 40, .head_dim_v = 24, .block_q = 32, .block_kv = 64, .stages = 2, .workers = 2, .mask = Mask::causal, .softcap = true, .bias = true}>("sm80 d40 dv24 causal bias softcap"),
        kernels<fp32, Spec{.head_dim = 13, .head_dim_v = 8, .block_q = 32, .block_kv = 32, .stages = 1, .workers = 2, .bias = true, .sink = true, .aligned = false}>("sm80 float d13 bias sink not aligned"),
        kernels<fp32, Spec{.head_dim = 13, .head_dim_v = 21, .block_q = 32, .block_kv = 32, .stages = 2, .workers = 2, .mask = Mask::causal, .aligned = false}>("sm80 float d13 dv21 not aligned"),
    };
}

std::vector<EmulatedBackward> sm80_packed_backward() {
    using kernel::bf16;
    using kernel::Mask;
    return {
        kernels<bf16, Spec{.head_dim = 32, .head_dim_v = 32, .block_q = 32, .block_kv = 64, .stages = 2, .workers = 2, .mask = Mask::causal, .sink = true, .packed = true}>("sm80 d32 causal sink packed"),
        kernels<bf16, Spec{.head_dim = 13, .head_dim_v = 21, .block_q = 32, .block_kv = 32, .stages = 1, .workers = 2, .mask = Mask::window, .aligned = false, .packed = true}>("sm80 d13 dv21 window not aligned packed"),
    };
}

}  // namespace tilewright::emulated
