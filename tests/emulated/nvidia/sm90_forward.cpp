// sm_90a forward kernels in emulation: one to three warpgroups, both schedules, turns, rings of one to three stages, persistent blocks with a second
// tile of queries and without, every mask and variant, packed heads, packed sequences.
#include "nvidia/sm90_kernels.h"

namespace tilewright::emulated {

using kernel::bf16;
using kernel::fp16;
using kernel::Mask;

std::vector<EmulatedKernel> sm90_kernels() {
    return {
        sm90_kernel<bf16, Spec{.stages = 2, .workers = 1}>("one warpgroup d64"),
        sm90_kernel<bf16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 128, .block_kv = 48, .stages = 2, .workers = 2, .overlapped = true, .turns = true, .persistent = true,
                               .mask = Mask::causal}>("two in turn d128 causal overlapped persistent"),
        sm90_kernel<fp16, Spec{.block_q = 192, .block_kv = 32, .stages = 3, .workers = 3, .overlapped = true, .turns = true, .persistent = true, .mask = Mask::causal}>(
            "three in turn d64 causal overlapped persistent"),
        sm90_kernel<fp16, Spec{.block_q = 192, .block_kv = 64, .stages = 2, .workers = 3, .turns = true, .persistent = true}>("three in turn d64 persistent"),
        sm90_kernel<bf16, Spec{.block_q = 128, .block_kv = 96, .stages = 2, .workers = 2, .turns = true, .persistent = true, .mask = Mask::causal}>(
            "two in turn d64 causal persistent half tiles"),
        sm90_kernel<bf16, Spec{.block_q = 128, .block_kv = 96, .stages = 2, .workers = 2, .overlapped = true, .turns = true, .persistent = true, .mask = Mask::causal}>(
            "two in turn d64 causal overlapped persistent half tiles"),
        sm90_kernel<fp16, Spec{.block_q = 128, .block_kv = 96, .stages = 3, .workers = 2, .overlapped = true, .turns = true, .persistent = true, .mask = Mask::window}>(
            "two in turn d64 window overlapped persistent three stages half tiles"),
        sm90_kernel<bf16, Spec{.head_dim = 40, .head_dim_v = 72, .block_q = 128, .block_kv = 32, .stages = 1, .workers = 2, .slack = 0, .packs_heads = true, .persistent = true,
                               .mask = Mask::window, .sink = true}>("two d40 dv72 window one stage heads packed"),
        sm90_kernel<fp16, Spec{.head_dim = 24, .head_dim_v = 8, .block_q = 128, .block_kv = 32, .stages = 2, .workers = 2, .overlapped = true, .turns = true, .persistent = true,
                               .mask = Mask::causal, .softcap = true, .bias = true, .alibi = true, .sink = true}>("two d24 dv8 all variants"),
        sm90_kernel<bf16, Spec{.head_dim = 256, .head_dim_v = 256, .block_q = 128, .block_kv = 64, .stages = 1, .workers = 2, .turns = true, .persistent = true,
                               .mask = Mask::window}>("two in turn d256 one tile of queries window persistent"),
        sm90_kernel<bf16, Spec{.head_dim = 128, .head_dim_v = 64, .block_q = 64, .block_kv = 48, .stages = 3, .workers = 1, .blocks = 2, .overlapped = true, .rescaled = true}>(
            "one of two blocks d128 dv64 overlapped rescaled"),
        sm90_kernel<bf16, Spec{.head_dim = 64, .head_dim_v = 64, .block_q = 128, .block_kv = 32, .stages = 1, .workers = 2, .overlapped = true, .turns = true, .packs_heads = true,
                               .mask = Mask::causal}>("two in turn one stage overlapped heads packed causal"),
    };
}

std::vector<PackedKernel> sm90_packed_kernels() {
    return {
        sm90_packed_kernel<Spec{.block_q = 64, .block_kv = 32, .stages = 2, .workers = 1, .persistent = true, .packed = true}>("forward:hq2,hkv1,d64,bf16"),
        sm90_packed_kernel<Spec{.head_dim = 40, .head_dim_v = 24, .block_q = 128, .block_kv = 32, .stages = 2, .workers = 2, .overlapped = true, .turns = true, .packs_heads = true,
                                .persistent = true, .mask = Mask::causal, .packed = true}>("forward:hq4,hkv2,d40,dv24,bf16,causal"),
        sm90_packed_kernel<Spec{.block_q = 128, .block_kv = 96, .stages = 2, .workers = 2, .overlapped = true, .turns = true, .persistent = true, .mask = Mask::causal, .packed = true}>(
            "forward:hq2,hkv1,d64,bf16,causal"),
        sm90_packed_kernel<Spec{.head_dim = 256, .head_dim_v = 256, .block_q = 128, .block_kv = 64, .stages = 1, .workers = 2, .turns = true, .persistent = true, .mask = Mask::window,
                                .packed = true}>("forward:hq2,hkv2,d256,bf16,window20:5"),
    };
}

}  // namespace tilewright::emulated
