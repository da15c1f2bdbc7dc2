// Attention, decoding: the forward's loop over a part of the keys of a sequence; who is done last with an item merges its parts.
#pragma once
#include "combine.h"

namespace tilewright::kernel {

template <class Arch>
TILEWRIGHT_DEVICE void attention_decode(const typename Arch::Arguments& arguments, char* shared) {
    using Config = typename Arch::Config;
    using Output = typename Arch::Output;
    const DecodeParameters& decode = arguments.parameters;
    const ForwardParameters& p = decode.forward;
    Arch::for_each_part(arguments, shared, [&](const Part<Config>& part, typename Arch::Pipeline& pipeline) {
        Output output;
        OnlineSoftmax<Arch, Output::rows> softmax(rescores<Config> ? log2_of_e : p.scale * log2_of_e);
        output.clear();
        attend<Arch>(p, part, pipeline, softmax, output);

        if constexpr (Arch::sharers == 1) {
            if (part.whole()) return store<Arch>(p, part, softmax, output);
            leave(part, softmax, output, partial_sums<Config>(decode, part.slot_of(part.unit)));
        } else {  // workers that saw other keys of the same rows
            pipeline.await_merged();
            leave(part, softmax, output, pipeline.own_sums());
            pipeline.await_sums();
            auto load = [&](int i, int row, int column, float (&state)[2], float (&x)[Arch::combined_columns]) { pipeline.load_sums(i, row, column, state, x); };
            auto merge = [&](auto&& take) { merge_rows<Arch, Arch::sharers, 1>(part, Arch::sharers, softmax.scale, load, take); };
            if (part.whole()) return merge([&](int row, int column, const MergedRow<Arch>& merged) { finish<Arch>(p, part, row, column, merged); });
            RowSums to = partial_sums<Config>(decode, part.slot_of(part.unit));
            merge([&](int row, int column, const MergedRow<Arch>& merged) {
                Arch::store_sums(to.out + row * to.stride + column, merged.sum);
                if (column == 0) to.state[2 * row] = merged.maximum, to.state[2 * row + 1] = merged.total;
            });
        }
        if (Arch::arrives_last(decode.arrived + part.item, part.parts())) combine<Arch>(decode, part, softmax.scale);
    });
}

}  // namespace tilewright::kernel
