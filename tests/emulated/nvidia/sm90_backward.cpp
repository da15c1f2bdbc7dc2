// The backward's passes on sm_90a in emulation: dQ by a pass of its own, and summed in memory in any order and in a fixed one.
#include "nvidia/backward_kernels.h"
// The families' headers after CUDA's builtins.
#include "kernels/arch/sm90_backward_wide.h"

namespace tilewright::emulated {
namespace {

// As backends/nvidia launches it, on a device for three blocks at once.
template <class Arch>
std::string run_pass(const kernel::BackwardParameters& p, int order) {
    using Config = typename Arch::Config;
    const kernel::ForwardParameters& f = p.forward;
    const void* any = f.seq_q > 0 ? f.query : f.key;
    auto map = [&](const void* address, const kernel::Strides& strides, int columns, bool of_keys) {
        int rows = of_keys ? f.seq_kv : f.seq_q;
        return gpu::encode(rows > 0 ? address : any, kernel::tensor_map_shape(strides, columns, rows, of_keys ? f.heads_kv : f.heads_q, f.batch, of_keys ? Config::block_kv : Config::block_q));
    };
    kernel::TensorMap query = map(f.query, f.query_strides, Config::head_dim, false), key = map(f.key, f.key_strides, Config::head_dim, true);
    kernel::TensorMap value = map(f.value, f.value_strides, Config::head_dim_v, true), out_gradient = map(p.out_gradient, p.out_gradient_strides, Config::head_dim_v, false);
    typename Arch::Arguments arguments = Config::over_keys ? typename Arch::Arguments{key, value, query, out_gradient, p} : typename Arch::Arguments{query, out_gradient, key, value, p};
    gpu::Launch launch = launch_of<Arch>(std::min(f.tiles, most_blocks), Arch::shared_bytes, order);
    launch.registers = kernel::sm90_registers_launched(Config::workers, 1);
    return gpu::run(launch, [&](char* shared) {
        gpu::allow_races(typename Arch::Shared(shared).found_garbage());  // once it is set it stays so
        kernel::backward_pass<Arch>(arguments, shared);
    });
}
template <class Element, Spec s>
std::string run(Pass pass, const kernel::BackwardParameters& p, int order) {
    using Keys = BackwardConfigOf<Element, s, Pass::keys>;
    if (pass == Pass::keys) return run_pass<kernel::Sm90Backward<Keys>>(p, order);
    if (pass == Pass::queries) return run_pass<kernel::Sm90Backward<BackwardConfigOf<Element, swapped(s), Pass::queries>>>(p, order);
    return run_rows<Keys>(pass, p, order);
}
template <class Element, Spec s>
EmulatedBackward kernels(const char* name) {
    return backward_kernels<Element, s>(name, run<Element, s>);
}
// Of wide heads.
template <class Element, Spec s>
std::string run_wide(Pass pass, const kernel::BackwardParameters& p, int order) {
    using Keys = BackwardConfigOf<Element, s, Pass::keys_alone>;
    if (pass == Pass::keys_alone) return run_pass<kernel::Sm90BackwardWide<Keys>>(p, order);
    if (pass == Pass::values_alone) return run_pass<kernel::Sm90BackwardWide<BackwardConfigOf<Element, s, Pass::values_alone>>>(p, order);
    if (pass == Pass::queries) return run_pass<kernel::Sm90BackwardWide<BackwardConfigOf<Element, swapped(s), Pass::queries>>>(p, order);
    return run_rows<Keys>(pass, p, order);
}
template <class Element, Spec s>
EmulatedBackward wide_kernels(const char* name) {
    EmulatedBackward kernels = backward_kernels<Element, s>(name, run_wide<Element, s>);
    kernels.apart = true;
    return kernels;
}

}  // namespace

std::vector<EmulatedBackward> sm90_backward() {
    using kernel::bf16;
    using kernel::fp16;
    using kernel::Mask;
    return {
        kernels<bf16, Spec{.block_q = 128, .block_kv = 128, .stages = 2, .workers = 2, .dq = 1, .mask = Mask::causal}>("sm90 d64 causal any order"),
        kernels<bf16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 64, .block_kv = 128, .stages = 1, .workers = 2, .dq = 2}>("sm90 d128 fixed order"),
        kernels<fp16, Spec{.block_q = 64, .block_kv = 128, .stages = 2, .workers = 2, .dq = 2, .mask = Mask::window, .sink = true}>("sm90 d64 window fixed order"),
        kernels<fp16, Spec{.head_dim = 72, .head_dim_v = 40, .block_q = 64, .block_kv = 64, .stages = 2, .workers = 1, .mask = Mask::causal, .softcap = true, .alibi = true, .sink = true}>(
            "sm90 d72 dv40 all variants two passes"),
        kernels<bf16, Spec{.block_q = 64, .block_kv = 128, .stages = 2, .workers = 2, .dq = 2, .mask = Mask::causal, .softcap = true}>("sm90 d64 causal softcap fixed order"),
        kernels<bf16, Spec{.head_dim = 96, .head_dim_v = 96, .block_q = 64, .block_kv = 128, .stages = 2, .workers = 2, .dq = 1, .mask = Mask::window}>("sm90 d96 window any order"),
        kernels<bf16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 64, .block_kv = 128, .stages = 2, .workers = 2, .dq = 1, .persistent = true, .mask = Mask::causal}>("sm90 d128 causal persistent any order"),
        kernels<fp16, Spec{.block_q = 128, .block_kv = 128, .stages = 2, .workers = 2, .dq = 2, .persistent = true}>("sm90 d64 persistent fixed order"),
        kernels<bf16, Spec{.block_q = 64, .block_kv = 128, .stages = 2, .workers = 2, .dq = 2, .persistent = true, .mask = Mask::causal}>("sm90 d64 causal persistent fixed order"),
        kernels<bf16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 64, .block_kv = 128, .stages = 2, .workers = 2, .dq = 2, .persistent = true, .mask = Mask::causal}>("sm90 d128 causal persistent fixed order"),
        kernels<fp16, Spec{.head_dim = 72, .head_dim_v = 40, .block_q = 64, .block_kv = 128, .stages = 2, .workers = 2, .dq = 2, .mask = Mask::window, .sink = true}>("sm90 d72 dv40 window fixed order"),
        kernels<fp16, Spec{.head_dim = 72, .head_dim_v = 40, .block_q = 64, .block_kv = 128, .stages = 2, .workers = 2, .dq = 1, .persistent = true, .mask = Mask::window, .sink = true}>("sm90 d72 dv40 window persistent any order"),
        wide_kernels<bf16, Spec{.head_dim = 256, .head_dim_v = 256, .block_q = 64, .block_kv = 128, .stages = 2, .workers = 2, .dq = 1, .mask = Mask::causal}>("sm90 wide d256 causal any order"),
        wide_kernels<bf16, Spec{.head_dim = 192, .head_dim_v = 128, .block_q = 64, .block_kv = 128, .stages = 2, .workers = 2, .mask = Mask::window}>("sm90 wide d192 dv128 window three passes"),
        wide_kernels<fp16, Spec{.head_dim = 72, .head_dim_v = 104, .block_q = 32, .block_kv = 128, .stages = 2, .workers = 2, .mask = Mask::causal, .softcap = true, .alibi = true, .sink = true}>(
            "sm90 wide d72 dv104 all variants three passes"),
        wide_kernels<fp16, Spec{.head_dim = 136, .head_dim_v = 72, .block_q = 64, .block_kv = 128, .stages = 1, .workers = 2, .dq = 1}>("sm90 wide d136 dv72 any order"),
    };
}

}  // namespace tilewright::emulated
