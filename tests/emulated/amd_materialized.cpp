// The standard baseline on AMD's arch headers in emulation: three launches with the scores in memory between them.
#include <cmath>

#include "amd_kernels.h"
#include "kernels/arch/cdna.h"
#include "kernels/arch/cdna4.h"
#include "kernels/arch/rdna3.h"
#include "kernels/arch/rdna4.h"
#include "kernels/attention_materialized.h"

namespace tilewright::emulated {

using kernel::bf16;
using kernel::fp16;
using kernel::Mask;

namespace {

template <class Arch, bool flushes>
std::string run_materialized(const kernel::ForwardParameters& given, int order) {
    alignas(64) static char shared[Arch::shared_bytes];
    std::vector<float> scores(size_t(given.batch) * size_t(given.heads_q) * size_t(given.seq_q) * size_t(given.seq_kv) + 1, NAN);
    kernel::ForwardParameters parameters = given;
    parameters.scores = scores.data();
    flushes_fp16_subnormals = flushes;
    for (parameters.phase = 0; parameters.phase < 3; ++parameters.phase)
        for (int i = 0; i < parameters.tiles; ++i) {
            std::memset(shared, 0xff, sizeof shared);
            typename Arch::Arguments arguments{parameters};
            run_block(i, Arch::threads, Arch::wave, Order(order), [&] { kernel::attention_materialized<Arch>(arguments, shared); });
        }
    return "";
}

template <template <class> class Arch, class Element, Spec s, bool flushes = false>
EmulatedKernel materialized(const char* name) {
    return describe<Element, s>(name, run_materialized<Arch<ConfigOf<Element, s>>, flushes>);
}

}  // namespace

std::vector<EmulatedKernel> materialized_kernels() {
    return {
        materialized<kernel::Cdna, bf16, Spec{.block_q = 64, .block_kv = 32, .workers = 2, .mask = Mask::causal}>("materialized mfma32 d64 causal"),
        materialized<kernel::Cdna, fp16, Spec{.block_q = 32, .workers = 2}, true>("materialized gfx90a mfma16 d64"),
        materialized<kernel::Cdna4, bf16, Spec{.head_dim = 40, .head_dim_v = 72, .block_q = 32, .block_kv = 32, .workers = 2, .mask = Mask::window, .sink = true}>("materialized gfx950 d40 dv72 window"),
        materialized<kernel::Rdna3, fp16, Spec{.head_dim = 21, .head_dim_v = 13, .block_q = 16, .block_kv = 32, .workers = 1, .mask = Mask::causal, .softcap = true, .bias = true, .alibi = true,
                                               .aligned = false}>("materialized wmma11 variants"),
        materialized<kernel::Rdna4, bf16, Spec{.head_dim = 32, .head_dim_v = 32, .block_q = 32, .block_kv = 32, .stages = 2, .workers = 2, .mask = Mask::causal, .rescaled = true}>("materialized wmma12 rescaled"),
    };
}

}  // namespace tilewright::emulated
