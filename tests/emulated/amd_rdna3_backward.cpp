// RDNA3's backward in emulation.
#include "amd_backward_kernels.h"
#include "kernels/arch/rdna3.h"

namespace tilewright::emulated {

using kernel::bf16;
using kernel::fp16;
using kernel::Mask;
using kernel::Rdna3;

std::vector<EmulatedBackward> rdna3_backward() {
    return {
        amd_backward<Rdna3, bf16, Spec{.head_dim = 40, .head_dim_v = 72, .block_q = 32, .block_kv = 64, .stages = 2, .workers = 2, .mask = Mask::window}, 32>("wmma11 d40 dv72 window"),
        amd_backward<Rdna3, bf16, Spec{.head_dim = 32, .head_dim_v = 32, .block_q = 32, .block_kv = 32, .workers = 2, .bias = true, .sink = true}, 32>("wmma11 d32 bias sink"),
        amd_backward<Rdna3, fp16,
                     Spec{.head_dim = 21, .head_dim_v = 13, .block_q = 16, .block_kv = 16, .workers = 1, .mask = Mask::causal, .softcap = true, .alibi = true, .sink = true, .aligned = false},
                     32>("wmma11 d21 dv13 causal variants unaligned"),
    };
}

std::vector<EmulatedBackward> rdna3_packed_backward() {
    return {amd_backward<Rdna3, bf16, Spec{.head_dim = 32, .head_dim_v = 32, .block_q = 32, .block_kv = 32, .stages = 2, .workers = 2, .mask = Mask::window, .packed = true}, 32>("wmma11 d32 window packed")};
}

}  // namespace tilewright::emulated
