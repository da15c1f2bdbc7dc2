// Attention, forward: every tile of queries sees all its keys at once.
#pragma once
#include "attention.h"

namespace tilewright::kernel {

template <class Arch>
TILEWRIGHT_DEVICE void attention_forward(const typename Arch::Arguments& arguments, char* shared) {
    using Config = typename Arch::Config;
    const ForwardParameters& p = forward_of(arguments.parameters);
    Arch::for_each_tile(arguments, shared, [&](const Tile<Config>& tile, typename Arch::Pipeline& pipeline) {
        typename Arch::Output output;
        OnlineSoftmax<Arch, Arch::Output::rows> softmax(rescores<Config> ? log2_of_e : p.scale * log2_of_e);
        output.clear();
        attend<Arch>(p, tile, pipeline, softmax, output);
        store<Arch>(p, tile, softmax, output);
    });
}

}  // namespace tilewright::kernel
