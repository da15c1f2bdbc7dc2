// Decoding on sm_90a in emulation: warps that share the keys of a tile, and a warpgroup; dense and in pages, with boxes smaller than a tile and larger.
#include "nvidia/launch.h"
// Before the kernels.
#include "decode.h"
#include "kernels/arch/sm90_decode.h"
#include "kernels/attention_decode.h"

namespace tilewright::emulated {
namespace {

// As backends/nvidia launches it.
template <class Arch>
std::string run_sm90_decode(const kernel::DecodeParameters& decode, int blocks, int order) {
    using Config = typename Arch::Config;
    const kernel::ForwardParameters& p = decode.forward;
    auto map = [&](const void* address, const kernel::Strides& strides, int columns) {
        int rows = Config::paged ? 1 << decode.page_shift : p.seq_kv, sequences = Config::paged ? decode.pages : p.batch;
        return gpu::encode(p.seq_kv > 0 ? address : p.query, kernel::tensor_map_shape(strides, columns, rows, p.heads_kv, sequences, Config::paged ? std::min(rows, Config::block_kv) : Config::block_kv,
                                                                                      Config::paged && Config::block_q == 64));
    };
    typename Arch::Arguments arguments{map(p.key, p.key_strides, Config::head_dim), map(p.value, p.value_strides, Config::head_dim_v), decode};
    return gpu::run(launch_of<Arch>(blocks, Arch::shared_bytes, order), [&](char* shared) { kernel::attention_decode<Arch>(arguments, shared); });
}
template <Spec s>
DecodeKernel decode_kernel(const char* problem) {
    return {problem, s.block_q, s.paged, run_sm90_decode<kernel::Sm90Decode<ConfigOf<kernel::bf16, s>>>};
}

}  // namespace

std::vector<DecodeKernel> sm90_decode_kernels() {
    using kernel::Mask;
    return {
        decode_kernel<Spec{.block_q = 16, .block_kv = 64, .stages = 2, .workers = 4, .early_kb = 48, .packs_heads = true}>("decode:hq8,hkv2,sq1,skv300,d64,bf16"),
        decode_kernel<Spec{.block_q = 16, .block_kv = 32, .stages = 3, .workers = 2, .packs_heads = true, .paged = true}>("decode:hq8,hkv2,sq1,skv300,d64,bf16"),
        decode_kernel<Spec{.head_dim = 40, .head_dim_v = 24, .block_q = 16, .block_kv = 64, .stages = 2, .workers = 1, .early_kb = 24, .packs_heads = true, .mask = Mask::causal, .sink = true, .paged = true}>(
            "decode:hq6,hkv1,sq5,skv200,d40,dv24,bf16,causal,sink"),
        decode_kernel<Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 16, .block_kv = 128, .stages = 2, .workers = 8, .packs_heads = true, .mask = Mask::window, .paged = true}>(
            "decode:hq4,hkv2,sq4,skv400,d128,bf16,window50:0"),
        decode_kernel<Spec{.block_q = 64, .block_kv = 64, .stages = 2, .workers = 1, .overlapped = true, .packs_heads = true, .mask = Mask::causal}>("decode:hq16,hkv2,sq6,skv300,d64,bf16,causal"),
        decode_kernel<Spec{.head_dim = 128, .head_dim_v = 72, .block_q = 64, .block_kv = 32, .stages = 1, .workers = 1, .packs_heads = true, .mask = Mask::causal, .paged = true}>(
            "decode:hq16,hkv2,sq9,skv200,d128,dv72,bf16,causal"),
    };
}

}  // namespace tilewright::emulated
