// What the backward does row by row: the statistics that both passes read, and the gradient of the sinks.
#pragma once
#include "backward_tile.h"
#include "variants.h"

namespace tilewright::kernel {

// One of the padded queries of a batch and head: the sequence that it belongs to, and its number there.
template <class Config>
struct PaddedQuery {
    int batch, query, seq_q, seq_kv, diagonal;  // `batch`: of packed sequences the row of the first query

    TILEWRIGHT_DEVICE PaddedQuery(const BackwardParametersOf<Config>& p, int of_batch, int padded)
        : batch(of_batch), query(padded), seq_q(p.forward.seq_q), seq_kv(p.forward.seq_kv), diagonal(p.forward.diagonal) {
        if constexpr (Config::packed) {
            auto queries = query_slots(p, backward_query_block);
            int sequence = queries.sequence_of(padded / backward_query_block);
            query -= queries.first_slot(sequence) * backward_query_block;
            batch = queries.first(sequence), seq_q = query < 0 ? 0 : queries.length(sequence), seq_kv = key_slots(p, 1).length(sequence);
            diagonal = p.top_left ? 0 : seq_kv - seq_q;
        }
    }
    TILEWRIGHT_DEVICE bool inside() const { return query < seq_q; }
    // Where its log-sum is among those given.
    TILEWRIGHT_DEVICE long long given(const ForwardParameters& p, int head) const {
        if constexpr (Config::packed) return (long long)head * p.seq_q + (batch + query);
        else return ((long long)batch * p.heads_q + head) * p.seq_q + query;
    }
    // What the passes read of it; `dot` is that of the gradient of its output with its output, 0 if it sees nothing.
    TILEWRIGHT_DEVICE float log_sum(const ForwardParameters& p, int head) const {
        if (!inside() || p.lse[given(p, head)] == -infinity) return infinity;
        return natural_log_sums<Config> ? p.lse[given(p, head)] : p.lse[given(p, head)] * log2_of_e;
    }
    TILEWRIGHT_DEVICE float delta(const PlainBackwardParameters& p, int head, float dot) const {
        return inside() && p.lse_gradient ? dot - p.lse_gradient[given(p.forward, head)] : dot;
    }
    // Does any key take part in its softmax, as far as the mask goes?
    TILEWRIGHT_DEVICE bool sees_keys(const ForwardParameters& p) const {
        if constexpr (Config::mask == Mask::none) return seq_kv > 0;
        else return max_of(0, query + diagonal - p.window_left) < min_of(seq_kv, query + diagonal + 1 + p.window_right);
    }
};

// log_sums and deltas of every query, and of the queries that fill the last block. What stands in the rows of a query that
// sees nothing is not read.
template <class Arch>
TILEWRIGHT_DEVICE void attention_backward_prologue(const typename Arch::Arguments& arguments, char*) {
    using Config = typename Arch::Config;
    using Element = typename Config::Element;
    const auto& p = arguments.parameters;
    const ForwardParameters& forward = p.forward;
    Arch::for_each_query(arguments, [&](int batch, int head, int padded) {
        PaddedQuery<Config> at(p, batch, padded);
        float dot = 0;
        if (at.inside() && at.sees_keys(forward))
            dot = Arch::template dot<Config::head_dim_v>(row_of((const Element*)forward.out, forward.out_strides, at.batch, head, at.query),
                                                         row_of((const Element*)p.out_gradient, p.out_gradient_strides, at.batch, head, at.query));
        dot = Arch::sum_of_sharers(dot);  // lanes whose queries differ take part in it together
        long long row = ((long long)batch * forward.heads_q + head) * p.padded_queries + padded;
        if (Arch::leads_row()) Arch::store_statistics(p, row, at.log_sum(forward, head), at.delta(p, head, dot));
        if constexpr (Config::dq != 0) Arch::clear_query_sums(p, row);
    });
}

// dQ of the sums that the pass over keys has left, where it gives it.
template <class Arch>
TILEWRIGHT_DEVICE void attention_backward_epilogue(const typename Arch::Arguments& arguments, char*) {
    using Element = typename Arch::Config::Element;
    const PlainBackwardParameters& p = arguments.parameters;
    Arch::for_each_query(arguments, [&](int batch, int head, int query) {
        if (query >= p.forward.seq_q) return;
        long long row = ((long long)batch * p.forward.heads_q + head) * p.padded_queries + query;
        Arch::store_query_sums(p, row, row_of((Element*)p.query_gradient, p.query_gradient_strides, batch, head, query));
    });
}

// The sink is a key without a value: its P is exp(sink - lse), its dP is 0, so dSink = -sum of P * D over batch and queries.
template <class Arch>
TILEWRIGHT_DEVICE void attention_backward_sink(const typename Arch::Arguments& arguments, char*) {
    const PlainBackwardParameters& p = arguments.parameters;
    const ForwardParameters& forward = p.forward;
    Arch::for_each_head(arguments, [&](int head) {
        typename Arch::Value sum{};
        for (int batch = 0; batch < forward.batch; ++batch) {
            long long first = ((long long)batch * forward.heads_q + head) * p.padded_queries;
            for (int query = 0; query < p.padded_queries; query += Arch::columns_at_once) {
                auto log_sums = Arch::values_at(p.log_sums + first + query), deltas = Arch::values_at(p.deltas + first + query);
                auto exponent = natural_log_sums<typename Arch::Config> ? (forward.sink[head] - log_sums) * log2_of_e : forward.sink[head] * log2_of_e - log_sums;
                sum += Arch::exp2_at_most_one(exponent) * deltas;
            }
        }
        float total = Arch::row_sum(sum);
        if (Arch::leads_row()) p.sink_gradient[head] = -total;
    });
}

}  // namespace tilewright::kernel
