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
    if constexpr (!Arch::stores_late) {
        Arch::for_each_tile(arguments, shared, [&](const Tile& tile, Pipeline& pipeline) {
            typename Arch::Output output;
            Softmax softmax(scale);
            output.clear();
            attend<Arch>(p, tile, pipeline, softmax, output, [] {});
            store<Arch>(p, tile, softmax, output);
        });
    } else {  // rounded outputs wait in half of their registers until the next tile's first product has started
        typename Arch::Output output;
        float log_sum[Arch::Output::rows];
        Tile last;
        last.first_row = -1;  // nothing waits
        auto store_last = [&] {
            if (last.first_row < 0) return;
            TILEWRIGHT_UNROLL for (int r = 0; r < Arch::Output::rows; ++r)
                store_row<Arch>(p, last, output.row(r), log_sum[r], [&](auto* to, bool inside) { output.store_rounded_row(r, to, inside); });
            last.first_row = -1;
        };
        auto attend_tile = [&](const Tile& tile, Pipeline& pipeline) {
            Softmax softmax(scale);
            attend<Arch>(p, tile, pipeline, softmax, output, [&] { store_last(), output.clear(); });
            TILEWRIGHT_UNROLL for (int r = 0; r < Arch::Output::rows; ++r) {
                RowResult result = finish_row<Arch>(p, tile, softmax, r, output.row(r));
                output.round_row(r, result.factor), log_sum[r] = result.log_sum;
            }
            last = tile;
        };
        Arch::for_each_tile(arguments, shared, attend_tile, store_last);
    }
}

}  // namespace tilewright::kernel
