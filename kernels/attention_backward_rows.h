// What the backward does row by row: the statistics that both passes read, and the gradient of the sinks.
#pragma once
#include "variants.h"

namespace tilewright::kernel {

// Does any key take part in the query's softmax, as far as the mask goes?
template <class Config>
TILEWRIGHT_DEVICE bool sees_keys(const ForwardParameters& p, int query) {
    if constexpr (Config::mask == Mask::none) return p.seq_kv > 0;
    else return max_of(0, query + p.diagonal - p.window_left) < min_of(p.seq_kv, query + p.diagonal + 1 + p.window_right);
}

// log_sums and deltas of every query, and of the queries that fill the last block. What stands in the rows of a query that
// sees nothing is not read.
template <class Arch>
TILEWRIGHT_DEVICE void attention_backward_prologue(const typename Arch::Arguments& arguments, char*) {
    using Config = typename Arch::Config;
    using Element = typename Config::Element;
    const BackwardParameters& p = arguments.parameters;
    const ForwardParameters& forward = p.forward;
    Arch::for_each_query(arguments, [&](int batch, int head, int query) {
        float log_sum = infinity, delta = 0;
        bool inside = query < forward.seq_q;
        long long given = ((long long)batch * forward.heads_q + head) * forward.seq_q + query;
        if (inside) {
            if (forward.lse[given] != -infinity) log_sum = forward.lse[given] * log2_of_e;
            if (sees_keys<Config>(forward, query))
                delta = Arch::template dot<Config::head_dim_v>(row_of((const Element*)forward.out, forward.out_strides, batch, head, query),
                                                               row_of((const Element*)p.out_gradient, p.out_gradient_strides, batch, head, query));
        }
        delta = Arch::sum_of_sharers(delta);  // lanes whose queries differ take part in it together
        if (inside && p.lse_gradient) delta -= p.lse_gradient[given];
        long long row = ((long long)batch * forward.heads_q + head) * p.padded_queries + query;
        if (Arch::leads_row()) p.log_sums[row] = log_sum, p.deltas[row] = delta;
        if constexpr (Config::dq != 0) Arch::clear_query_sums(p, row);
    });
}

// dQ of the sums that the pass over keys has left, where it gives it.
template <class Arch>
TILEWRIGHT_DEVICE void attention_backward_epilogue(const typename Arch::Arguments& arguments, char*) {
    using Element = typename Arch::Config::Element;
    const BackwardParameters& p = arguments.parameters;
    Arch::for_each_query(arguments, [&](int batch, int head, int query) {
        if (query >= p.forward.seq_q) return;
        long long row = ((long long)batch * p.forward.heads_q + head) * p.padded_queries + query;
        Arch::store_query_sums(p, row, row_of((Element*)p.query_gradient, p.query_gradient_strides, batch, head, query));
    });
}

// The sink is a key without a value: its P is exp(sink - lse), its dP is 0, so dSink = -sum of P * D over batch and queries.
template <class Arch>
TILEWRIGHT_DEVICE void attention_backward_sink(const typename Arch::Arguments& arguments, char*) {
    const BackwardParameters& p = arguments.parameters;
    const ForwardParameters& forward = p.forward;
    Arch::for_each_head(arguments, [&](int head) {
        typename Arch::Value sum{};
        for (int batch = 0; batch < forward.batch; ++batch) {
            long long first = ((long long)batch * forward.heads_q + head) * p.padded_queries;
            for (int query = 0; query < p.padded_queries; query += Arch::columns_at_once) {
                auto log_sums = Arch::values_at(p.log_sums + first + query), deltas = Arch::values_at(p.deltas + first + query);
                sum += Arch::exp2(Arch::min(forward.sink[head] * log2_of_e - log_sums, Arch::broadcast(0.0f))) * deltas;
            }
        }
        float total = Arch::row_sum(sum);
        if (Arch::leads_row()) p.sink_gradient[head] = -total;
    });
}

}  // namespace tilewright::kernel
