// Decoding on sm_80 in emulation.
#include "nvidia/launch.h"
// Before the kernels.
#include "decode.h"
#include "kernels/arch/sm80_decode.h"
#include "kernels/attention_decode.h"

namespace tilewright::emulated {
namespace {

template <class Arch>
std::string run_sm80_decode(const kernel::DecodeParameters& decode, int blocks, int order) {
    typename Arch::Arguments arguments{decode};
    return gpu::run(launch_of<Arch>(blocks, Arch::shared_bytes, order), [&](char* shared) { kernel::attention_decode<Arch>(arguments, shared); });
}
template <Spec s>
DecodeKernel decode_kernel(const char* problem) {
    return {problem, s.block_q, s.paged, run_sm80_decode<kernel::Sm80Decode<ConfigOf<kernel::bf16, s>>>};
}

}  // namespace

std::vector<DecodeKernel> sm80_decode_kernels() {
    using kernel::Mask;
    return {
        decode_kernel<Spec{.block_q = 16, .block_kv = 32, .stages = 2, .workers = 1, .packs_heads = true}>("decode:hq8,hkv2,sq1,skv300,d64,bf16"),
        decode_kernel<Spec{.block_q = 32, .block_kv = 32, .stages = 3, .workers = 2, .overlapped = true, .packs_heads = true, .paged = true}>("decode:hq8,hkv2,sq5,skv300,d64,bf16"),
        decode_kernel<Spec{.head_dim = 37, .head_dim_v = 21, .block_q = 16, .block_kv = 32, .stages = 2, .workers = 1, .packs_heads = true, .mask = Mask::causal, .sink = true, .aligned = false, .paged = true}>(
            "decode:hq6,hkv1,sq5,skv200,d37,dv21,bf16,causal,sink"),
    };
}

}  // namespace tilewright::emulated
