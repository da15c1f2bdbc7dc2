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
        if (part.whole()) return store<Arch>(p, part, softmax, output);

        long long first_place = part.slot_of(part.unit) * Config::block_q;
        TILEWRIGHT_UNROLL for (int r = 0; r < Output::rows; ++r) {
            int row = output.row(r);
            bool inside = part.inside(row);
            float total = softmax.total(r);
            output.store_row(r, 1.0f, (fp32*)decode.partial_out + (first_place + row) * partial_columns(Config::head_dim_v), inside);
            float* state = decode.partial_state + (first_place + row) * 2;
            if (inside && output.leads_row()) state[0] = softmax.maximum[r], state[1] = total;
        }
        if (Arch::arrives_last(decode.arrived + part.item, part.parts())) combine<Arch>(decode, part, softmax.scale);
    });
}

}  // namespace tilewright::kernel
