// Makes emulated forward kernels of kernels/arch/sm90.h.
#pragma once
#include "nvidia/launch.h"
// Before the kernels.
#include "kernels/arch/sm90.h"
#include "kernels/attention_forward.h"
#include "packed.h"

namespace tilewright::emulated {

inline kernel::TensorMap map_of(const void* address, const kernel::Strides& strides, int columns, int rows, int heads, int batch, int box_rows) {
    return gpu::encode(address, kernel::tensor_map_shape(strides, columns, rows, heads, batch, box_rows));
}

// As backends/nvidia launches it.
template <class Arch, class Parameters>
std::string run_sm90(const Parameters& parameters, int order) {
    using Config = typename Arch::Config;
    typename Arch::Arguments arguments{{}, {}, {}, parameters};
    const kernel::ForwardParameters& p = kernel::forward_of(parameters);
    const void *key = p.seq_kv > 0 ? p.key : p.query, *value = p.seq_kv > 0 ? p.value : p.query;
    arguments.query = map_of(p.query, p.query_strides, Config::head_dim, p.seq_q, p.heads_q, p.batch, Config::block_q);
    arguments.key = map_of(key, p.key_strides, Config::head_dim, p.seq_kv, p.heads_kv, p.batch, Config::block_kv);
    arguments.value = map_of(value, p.value_strides, Config::head_dim_v, p.seq_kv, p.heads_kv, p.batch, Config::block_kv);
    gpu::Launch launch = launch_of<Arch>(Config::persistent ? std::min(p.tiles, most_blocks) : p.tiles, Arch::shared_bytes, order);
    launch.registers = kernel::sm90_registers_launched(Config::workers, Config::blocks);
    return gpu::run(launch, [&](char* shared) { kernel::attention_forward<Arch>(arguments, shared); });
}

template <class Element, Spec s>
EmulatedKernel sm90_kernel(const char* name) {
    return describe<Element, s>(name, run_sm90<kernel::Sm90<ConfigOf<Element, s>>, kernel::ForwardParameters>);
}
template <Spec s>
PackedKernel sm90_packed_kernel(const char* problem) {
    return {problem, s.block_q, s.packs_heads, run_sm90<kernel::Sm90<ConfigOf<kernel::bf16, s>>, kernel::PackedParameters>};
}

}  // namespace tilewright::emulated
