// sm_90a forward kernels as the model configures them for an H200, in emulation.
#include "nvidia/sm90_kernels.h"

namespace tilewright::emulated {

std::vector<EmulatedKernel> sm90_default_kernels() {
    using kernel::bf16;
    using kernel::Mask;
    return {
        sm90_kernel<bf16, Spec{.block_q = 192, .block_kv = 128, .stages = 3, .workers = 3, .overlapped = true, .turns = true, .persistent = true}>("default d64"),
        sm90_kernel<bf16, Spec{.block_q = 192, .block_kv = 128, .stages = 3, .workers = 3, .overlapped = true, .turns = true, .persistent = true, .mask = Mask::causal}>("default d64 causal"),
        sm90_kernel<bf16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 192, .block_kv = 128, .stages = 2, .workers = 3, .turns = true, .persistent = true}>("default d128"),
        sm90_kernel<bf16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 192, .block_kv = 64, .stages = 3, .workers = 3, .overlapped = true, .turns = true, .persistent = true,
                               .mask = Mask::causal}>("default d128 causal"),
        sm90_kernel<bf16, Spec{.head_dim = 256, .head_dim_v = 256, .block_q = 128, .block_kv = 64, .stages = 2, .workers = 2, .overlapped = true, .turns = true, .persistent = true}>("default d256"),
        sm90_kernel<bf16, Spec{.head_dim = 256, .head_dim_v = 256, .block_q = 128, .block_kv = 64, .stages = 2, .workers = 2, .overlapped = true, .turns = true, .persistent = true,
                               .mask = Mask::causal}>("default d256 causal"),
        sm90_kernel<bf16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 128, .block_kv = 128, .stages = 2, .workers = 2, .overlapped = true, .turns = true, .persistent = true,
                               .mask = Mask::causal}>("d128 causal, two warpgroups"),
        sm90_kernel<bf16, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 192, .block_kv = 128, .stages = 2, .workers = 3, .turns = true, .persistent = true, .mask = Mask::causal}>(
            "d128 causal, three warpgroups"),
    };
}

}  // namespace tilewright::emulated
