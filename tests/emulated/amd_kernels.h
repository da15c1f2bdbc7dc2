// Makes emulated kernels of AMD's arch headers.
#pragma once
#include "amd_builtins.h"
#include "kernels/append.h"
#include "kernels/arch/amd_append.h"
#include "kernels/arch/amd_decode.h"
#include "kernels/attention_decode.h"
#include "kernels/attention_forward.h"
#include "decode.h"
#include "packed.h"
#include "spec.h"

namespace tilewright::emulated {

// As one block after another; LDS starts as NaN each time.
template <class Arch, bool flushes, class Parameters>
std::string run_amd(const Parameters& parameters, int order) {
    alignas(64) static char shared[Arch::shared_bytes];
    typename Arch::Arguments arguments{parameters};
    flushes_fp16_subnormals = flushes;
    for (int i = 0; i < kernel::forward_of(parameters).tiles; ++i) {
        std::memset(shared, 0xff, sizeof shared);
        run_block(i, Arch::threads, Arch::wave, Order(order), [&] { kernel::attention_forward<Arch>(arguments, shared); });
    }
    return "";
}

template <template <class> class Arch, class Element, Spec s, bool flushes = false>
EmulatedKernel amd_kernel(const char* name) {
    return describe<Element, s>(name, run_amd<Arch<ConfigOf<Element, s>>, flushes, kernel::ForwardParameters>);
}

template <template <class> class Arch, Spec s>
PackedKernel packed_kernel(const char* problem) {
    return {problem, s.block_q, s.packs_heads, run_amd<Arch<ConfigOf<kernel::bf16, s>>, false, kernel::PackedParameters>};
}
std::vector<PackedKernel> cdna_packed_kernels();
std::vector<PackedKernel> rdna3_packed_kernels();
std::vector<PackedKernel> rdna4_packed_kernels();

template <class Arch>
std::string run_decode(const kernel::DecodeParameters& parameters, int blocks, int order) {
    alignas(64) static char shared[Arch::shared_bytes];
    typename Arch::Arguments arguments{parameters};
    for (int i = 0; i < blocks; ++i) {
        std::memset(shared, 0xff, sizeof shared);
        run_block(i, Arch::threads, Arch::wave, Order(order), [&] { kernel::attention_decode<Arch>(arguments, shared); });
    }
    return "";
}
template <template <class> class Arch, Spec s>
DecodeKernel decode_kernel(const char* problem) {
    return {problem, s.block_q, s.paged, run_decode<kernel::AmdDecode<Arch<ConfigOf<kernel::bf16, s>>>>};
}
std::vector<DecodeKernel> cdna_decode_kernels();
std::vector<DecodeKernel> rdna3_decode_kernels();
std::vector<DecodeKernel> rdna4_decode_kernels();

// Appending to a cache, of 16-bit elements: which head dims, and whether it lies in pages.
struct AppendKernel {
    int head_dim, head_dim_v;
    bool paged;
    void (*run)(const kernel::AppendParameters& parameters);
};
template <Spec s>
void run_append(const kernel::AppendParameters& parameters) {
    using Arch = kernel::AmdAppend<ConfigOf<kernel::bf16, s>>;
    for (int i = 0; i < kernel::append_blocks(parameters); ++i)
        run_block(i, Arch::threads, 64, Order::lockstep, [&] { kernel::append<Arch>({parameters}, nullptr); });
}
template <Spec s>
AppendKernel append_kernel() {
    return {s.head_dim, s.head_dim_v, s.paged, run_append<s>};
}
std::vector<AppendKernel> append_kernels();

// One list a family.
std::vector<EmulatedKernel> cdna_kernels();
std::vector<EmulatedKernel> rdna3_kernels();
std::vector<EmulatedKernel> rdna4_kernels();

}  // namespace tilewright::emulated
