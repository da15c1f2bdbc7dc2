// RDNA4's backward in emulation.
#include "amd_backward_kernels.h"
#include "kernels/arch/rdna4.h"

namespace tilewright::emulated {

using kernel::bf16;
using kernel::fp16;
using kernel::Mask;
using kernel::Rdna4;

std::vector<EmulatedBackward> rdna4_backward() {
    return {
        amd_backward<Rdna4, fp16, Spec{.block_q = 64, .block_kv = 32, .workers = 2, .mask = Mask::window}, 32>("wmma12 d64 window"),
        amd_backward<Rdna4, fp16, Spec{.head_dim = 21, .head_dim_v = 5, .block_q = 32, .block_kv = 32, .workers = 1, .mask = Mask::window, .bias = true, .aligned = false}, 32>("wmma12 d21 window bias unaligned"),
        amd_backward<Rdna4, bf16, Spec{.head_dim = 5, .head_dim_v = 5, .block_q = 32, .block_kv = 32, .stages = 2, .workers = 2, .softcap = true, .sink = true, .aligned = false}, 32>(
            "wmma12 d5 variants unaligned"),
    };
}

std::vector<EmulatedBackward> rdna4_packed_backward() {
    return {amd_backward<Rdna4, bf16, Spec{.head_dim = 24, .head_dim_v = 40, .block_q = 64, .block_kv = 32, .workers = 2, .mask = Mask::causal, .packed = true}, 32>("wmma12 d24 dv40 causal packed")};
}

}  // namespace tilewright::emulated
