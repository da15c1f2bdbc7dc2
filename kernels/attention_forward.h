// Attention, forward: every tile of queries sees all its keys at once.
#pragma once
#include "attention.h"

namespace tilewright::kernel {

template <class Arch>
TILEWRIGHT_DEVICE void attention_forward(const typename Arch::Arguments& arguments, char* shared) {
    using Config = typename Arch::Config;
    const ForwardParameters& p = forward_of(arguments.parameters);
    using Tile = kernel::Tile<Config>;
    using Pipeline = typename Arch::Pipeline;
    using Softmax = OnlineSoftmax<Arch, Arch::Output::rows>;
    float scale = rescores<Config> ? log2_of_e : p.scale * log2_of_e;
    Arch::for_each_tile(arguments, shared, [&](const Tile& tile, Pipeline& pipeline) {
        typename Arch::Output output;
        Softmax softmax(scale);
        output.clear();
        attend<Arch>(p, tile, pipeline, softmax, output);
        if constexpr (Arch::stores_through_query) {
            float log_sum[Arch::Output::rows];
            TILEWRIGHT_UNROLL for (int r = 0; r < Arch::Output::rows; ++r) {
                RowResult result = finish_row<Arch>(p, tile, softmax, r, output.row(r));
                output.round_row(r, result.factor), log_sum[r] = result.log_sum;
            }
            pipeline.turn_and_release_query(output);
            TILEWRIGHT_UNROLL for (int r = 0; r < Arch::Output::rows; ++r)
                store_row<Arch>(p, tile, output.row(r), log_sum[r], [&](auto* to, bool inside) { output.store_turned_row(r, to, inside); });
        } else {
            store<Arch>(p, tile, softmax, output);
        }
    });
}

}  // namespace tilewright::kernel
