// RDNA3 kernels in emulation.
#include "amd_kernels.h"
#include "kernels/arch/rdna3.h"

namespace tilewright::emulated {

using kernel::bf16;
using kernel::fp16;
using kernel::Mask;
using kernel::Rdna3;

std::vector<PackedKernel> rdna3_packed_kernels() {
    return {
        packed_kernel<Rdna3, Spec{.head_dim = 24, .head_dim_v = 24, .block_q = 32, .block_kv = 16, .workers = 2, .mask = Mask::window, .sink = true, .packed = true}>(
            "forward:hq2,hkv1,d24,bf16,window9:4,topleft,sink"),
    };
}

std::vector<DecodeKernel> rdna3_decode_kernels() {
    return {
        decode_kernel<Rdna3, Spec{.head_dim = 32, .head_dim_v = 32, .block_q = 32, .block_kv = 32, .workers = 2, .packs_heads = true, .paged = true}>(
            "decode:hq8,hkv2,sq1,skv300,d32,bf16"),
        decode_kernel<Rdna3, Spec{.head_dim = 24, .head_dim_v = 24, .block_q = 64, .block_kv = 16, .workers = 4, .packs_heads = true, .mask = Mask::window, .alibi = true}>(
            "decode:hq2,hkv1,sq4,skv200,d24,bf16,window60:-1,alibi"),
    };
}

std::vector<EmulatedKernel> rdna3_kernels() {
    return {
        amd_kernel<Rdna3, bf16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 64, .block_kv = 32, .mask = Mask::causal}>("wmma11 d128 causal"),
        amd_kernel<Rdna3, fp16, Spec{.block_q = 64, .block_kv = 32, .workers = 2, .overlapped = true}>("wmma11 d64 overlapped"),
        amd_kernel<Rdna3, bf16, Spec{.head_dim = 72, .head_dim_v = 40, .block_q = 32, .block_kv = 16, .stages = 2, .workers = 2, .packs_heads = true,
                                     .mask = Mask::window, .sink = true}>("wmma11 d72 dv40 window two buffers"),
        amd_kernel<Rdna3, fp16, Spec{.head_dim = 21, .head_dim_v = 13, .block_q = 16, .block_kv = 32, .workers = 1, .mask = Mask::causal, .softcap = true,
                                     .bias = true, .aligned = false}>("wmma11 d21 dv13 variants"),
    };
}

}  // namespace tilewright::emulated
