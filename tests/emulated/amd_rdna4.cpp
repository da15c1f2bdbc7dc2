// RDNA4 kernels in emulation.
#include "amd_kernels.h"
#include "kernels/arch/rdna4.h"

namespace tilewright::emulated {

using kernel::bf16;
using kernel::fp16;
using kernel::Mask;
using kernel::Rdna4;

std::vector<PackedKernel> rdna4_packed_kernels() {
    return {
        packed_kernel<Rdna4, Spec{.head_dim = 32, .head_dim_v = 32, .block_q = 32, .block_kv = 32, .stages = 2, .workers = 1, .mask = Mask::causal, .packed = true}>(
            "forward:hq2,hkv2,d32,bf16,causal"),
    };
}

std::vector<DecodeKernel> rdna4_decode_kernels() {
    return {
        decode_kernel<Rdna4, Spec{.head_dim = 32, .head_dim_v = 32, .block_q = 64, .block_kv = 32, .workers = 4, .packs_heads = true, .paged = true}>(
            "decode:hq8,hkv2,sq1,skv300,d32,bf16"),
        decode_kernel<Rdna4, Spec{.head_dim = 21, .head_dim_v = 13, .block_q = 32, .block_kv = 32, .workers = 2, .packs_heads = true, .mask = Mask::causal, .aligned = false}>(
            "decode:hq6,hkv2,sq3,skv200,d21,dv13,bf16,causal"),
    };
}

std::vector<EmulatedKernel> rdna4_kernels() {
    return {
        amd_kernel<Rdna4, bf16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 64, .block_kv = 32, .mask = Mask::causal}>("wmma12 d128 causal"),
        amd_kernel<Rdna4, fp16, Spec{.block_q = 64, .block_kv = 32, .stages = 2, .workers = 2, .overlapped = true}>("wmma12 d64 overlapped two buffers"),
        amd_kernel<Rdna4, bf16, Spec{.head_dim = 160, .head_dim_v = 72, .block_q = 32, .block_kv = 16, .workers = 2, .packs_heads = true,
                                     .mask = Mask::window, .sink = true}>("wmma12 d160 dv72 window, queries in LDS"),
        amd_kernel<Rdna4, fp16, Spec{.head_dim = 5, .head_dim_v = 5, .block_q = 16, .block_kv = 16, .workers = 1, .mask = Mask::causal, .softcap = true,
                                     .bias = true, .aligned = false}>("wmma12 d5 variants"),
    };
}

}  // namespace tilewright::emulated
