// CDNA kernels in emulation: both matrix instructions, both schedules, one and two buffers, every variant.
#include "amd_kernels.h"
#include "kernels/arch/cdna4.h"

namespace tilewright::emulated {

using kernel::bf16;
using kernel::Cdna;
using kernel::Cdna4;
using kernel::fp16;
using kernel::Mask;

std::vector<PackedKernel> cdna_packed_kernels() {
    return {
        packed_kernel<Cdna, Spec{.head_dim = 32, .head_dim_v = 32, .block_q = 64, .block_kv = 32, .workers = 2, .dies = 2, .packed = true}>("forward:hq2,hkv1,d32,bf16"),
        packed_kernel<Cdna, Spec{.head_dim = 40, .head_dim_v = 24, .block_q = 32, .block_kv = 32, .workers = 2, .overlapped = true, .packs_heads = true,
                                 .mask = Mask::causal, .packed = true}>("forward:hq4,hkv2,d40,dv24,bf16,causal"),
    };
}

std::vector<AppendKernel> append_kernels() {
    return {append_kernel<Spec{}>(), append_kernel<Spec{.head_dim = 37, .head_dim_v = 21, .aligned = false, .paged = true}>(), append_kernel<Spec{.head_dim = 8, .head_dim_v = 72, .paged = true}>()};
}

std::vector<DecodeKernel> cdna_decode_kernels() {
    return {
        decode_kernel<Cdna, Spec{.head_dim = 32, .head_dim_v = 32, .block_q = 32, .block_kv = 32, .workers = 2, .packs_heads = true}>("decode:hq8,hkv2,sq1,skv300,d32,bf16"),
        decode_kernel<Cdna, Spec{.head_dim = 32, .head_dim_v = 32, .block_q = 32, .block_kv = 32, .workers = 2, .packs_heads = true, .paged = true}>(
            "decode:hq8,hkv2,sq1,skv300,d32,bf16"),
        decode_kernel<Cdna, Spec{.head_dim = 40, .head_dim_v = 24, .block_q = 16, .block_kv = 32, .workers = 1, .packs_heads = true, .mask = Mask::causal, .sink = true,
                                 .paged = true}>("decode:hq6,hkv1,sq5,skv200,d40,dv24,bf16,causal,sink"),
        decode_kernel<Cdna4, Spec{.head_dim = 576, .head_dim_v = 512, .block_q = 64, .block_kv = 32, .packs_heads = true, .mask = Mask::causal, .paged = true}>(
            "decode:hq16,hkv1,sq2,skv150,d576,dv512,bf16,causal"),
    };
}

std::vector<EmulatedKernel> cdna_kernels() {
    return {
        amd_kernel<Cdna, bf16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 128, .block_kv = 64, .mask = Mask::causal}>("mfma32 d128 causal"),
        amd_kernel<Cdna, fp16, Spec{.block_q = 32, .workers = 2, .overlapped = true}, true>("gfx90a mfma16 d64 overlapped"),
        amd_kernel<Cdna, fp16, Spec{.block_q = 64, .block_kv = 32, .stages = 2, .workers = 2, .mask = Mask::causal}>("mfma32 d64 two buffers"),
        amd_kernel<Cdna, bf16, Spec{.head_dim = 40, .head_dim_v = 72, .block_q = 96, .stages = 2, .workers = 2, .slack = 0, .dies = 3, .overlapped = true, .turns = true,
                                    .packs_heads = true, .mask = Mask::window, .sink = true}>("mfma16 three strips d40 dv72 window"),
        amd_kernel<Cdna, fp16, Spec{.head_dim = 13, .head_dim_v = 21, .block_q = 32, .block_kv = 32, .workers = 1, .mask = Mask::causal, .softcap = true,
                                    .bias = true, .alibi = true, .sink = true, .aligned = false}>("mfma32 d13 dv21 all variants"),
        amd_kernel<Cdna, bf16, Spec{.head_dim = 256, .head_dim_v = 256, .block_q = 16, .block_kv = 32, .workers = 1, .rescaled = true}>("mfma16 d256 rescaled"),
        amd_kernel<Cdna4, bf16, Spec{.block_q = 64, .block_kv = 32, .workers = 2, .dies = 3, .mask = Mask::causal}>("gfx950 mfma32 d64 causal"),
        amd_kernel<Cdna4, fp16, Spec{.head_dim = 80, .head_dim_v = 48, .block_q = 32, .workers = 2, .overlapped = true}>("gfx950 mfma16 d80 dv48 overlapped"),
    };
}

}  // namespace tilewright::emulated
