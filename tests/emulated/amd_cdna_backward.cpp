// CDNA's backward in emulation: both matrix instructions, columns fetched ahead and when asked for, every variant.
#include "amd_backward_kernels.h"
#include "kernels/arch/cdna4.h"

namespace tilewright::emulated {

using kernel::bf16;
using kernel::Cdna;
using kernel::Cdna4;
using kernel::fp16;
using kernel::Mask;

std::vector<EmulatedBackward> cdna_backward() {
    return {
        amd_backward<Cdna, bf16, Spec{.head_dim = 40, .head_dim_v = 72, .block_q = 64, .block_kv = 64, .stages = 2, .workers = 2, .dies = 3, .mask = Mask::window}, 64>("mfma32 d40 dv72 window"),
        amd_backward<Cdna, fp16, Spec{.block_q = 32, .block_kv = 32, .workers = 2, .mask = Mask::causal, .softcap = true, .alibi = true, .sink = true}, 64, true>(
            "gfx90a mfma16 d64 causal variants"),
        amd_backward<Cdna, bf16, Spec{.block_q = 64, .block_kv = 64, .workers = 2, .mask = Mask::causal, .softcap = true, .bias = true}, 64>("mfma32 d64 causal bias softcap"),
        amd_backward<Cdna, fp16, Spec{.head_dim = 24, .head_dim_v = 40, .block_q = 32, .block_kv = 32, .stages = 2, .workers = 1, .bias = true}, 64>("mfma32 d24 dv40 bias"),
        amd_backward<Cdna, bf16, Spec{.head_dim = 13, .head_dim_v = 21, .block_q = 32, .block_kv = 32, .workers = 1, .aligned = false}, 64>("mfma32 d13 dv21 unaligned"),
        amd_backward<Cdna4, fp16, Spec{.head_dim = 64, .head_dim_v = 64, .block_q = 32, .block_kv = 64, .stages = 2, .workers = 2, .dies = 2, .mask = Mask::causal}, 64>("gfx950 d64 causal"),
    };
}

std::vector<EmulatedBackward> cdna_packed_backward() {
    return {
        amd_backward<Cdna, bf16, Spec{.block_q = 32, .block_kv = 64, .stages = 2, .workers = 2, .mask = Mask::causal, .sink = true, .packed = true}, 64>("mfma32 d64 causal sink packed"),
        amd_backward<Cdna, bf16, Spec{.head_dim = 13, .head_dim_v = 21, .block_q = 32, .block_kv = 32, .workers = 1, .aligned = false, .packed = true}, 64>("mfma32 d13 dv21 unaligned packed"),
    };
}

}  // namespace tilewright::emulated
