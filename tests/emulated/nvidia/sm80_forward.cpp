// sm_80 forward kernels in emulation: products by mma.sync and in plain floats, both schedules, rings of one to three stages, aligned rows and others.
#include "nvidia/sm80_kernels.h"

namespace tilewright::emulated {

using kernel::bf16;
using kernel::fp16;
using kernel::fp32;
using kernel::Mask;

std::vector<EmulatedKernel> sm80_kernels() {
    return {
        sm80_kernel<bf16, Spec{.block_q = 64, .block_kv = 32, .stages = 2, .workers = 4, .mask = Mask::causal}>("mma d64 causal"),
        sm80_kernel<fp16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 64, .block_kv = 32, .stages = 2, .workers = 2, .overlapped = true, .persistent = true}>(
            "mma d128 two strips overlapped persistent"),
        sm80_kernel<bf16, Spec{.head_dim = 40, .head_dim_v = 72, .block_q = 32, .block_kv = 32, .stages = 3, .workers = 2, .slack = 0, .overlapped = true, .packs_heads = true, .persistent = true,
                               .mask = Mask::window, .sink = true}>("mma d40 dv72 window overlapped heads packed"),
        sm80_kernel<fp16, Spec{.head_dim = 13, .head_dim_v = 21, .block_q = 32, .block_kv = 16, .stages = 1, .workers = 2, .mask = Mask::causal, .softcap = true, .bias = true, .alibi = true,
                               .sink = true, .aligned = false}>("mma d13 dv21 all variants not aligned"),
        sm80_kernel<fp32, Spec{.head_dim = 32, .head_dim_v = 48, .block_q = 32, .block_kv = 32, .stages = 2, .workers = 2, .persistent = true, .mask = Mask::causal}>("float d32 dv48 causal persistent"),
        sm80_kernel<fp32, Spec{.head_dim = 9, .head_dim_v = 20, .block_q = 16, .block_kv = 16, .stages = 1, .workers = 1, .packs_heads = true, .mask = Mask::window, .rescaled = true, .aligned = false}>(
            "float d9 dv20 window rescaled not aligned"),
    };
}

std::vector<PackedKernel> sm80_packed_kernels() {
    return {
        sm80_packed_kernel<Spec{.head_dim = 32, .head_dim_v = 32, .block_q = 64, .block_kv = 32, .stages = 2, .workers = 2, .persistent = true, .packed = true}>("forward:hq2,hkv1,d32,bf16"),
        sm80_packed_kernel<Spec{.head_dim = 40, .head_dim_v = 24, .block_q = 32, .block_kv = 32, .stages = 2, .workers = 2, .overlapped = true, .packs_heads = true, .mask = Mask::causal,
                                .packed = true}>("forward:hq4,hkv2,d40,dv24,bf16,causal"),
    };
}

}  // namespace tilewright::emulated
