// The gradients of attention, in plain loops.
#pragma once
#include <vector>

#include "verify/reference.h"

namespace tilewright {

// The loss's gradient with respect to the forward's results.
struct OutputGradients {
    TensorView out;  // [batch][heads_q][seq_q][head_dim_v]
    TensorView lse;  // [batch][heads_q][seq_q][1]; absent: zero
};

// Dense, in the order of the dimensions named.
struct Gradients {
    std::vector<double> query;  // [batch][heads_q][seq_q][head_dim]
    std::vector<double> key;    // [batch][heads_kv][seq_kv][head_dim], summed over the query heads of a group
    std::vector<double> value;  // [batch][heads_kv][seq_kv][head_dim_v], likewise
    std::vector<double> bias;   // [batch][heads_q][seq_q][seq_kv] before any reduction over broadcast dimensions (of some rows: those of the queries); empty without a bias
    std::vector<double> sink;   // [heads_q], summed over batch and queries; empty without a sink
    std::vector<double> sink_terms;  // [batch][heads_q][seq_q]: what `sink` sums up; empty without a sink
    double largest_term = 0;    // finite; of what query and key sum up, with P * dP and P * D apart, which may cancel
    double largest_bias_term = 0;  // likewise of the bias
};

// With D = dot(dO, O) - dLSE and dP = dO V^T: dS = P (dP - D), dV = P^T dO, dBias = dS, dSink = -p_sink D, and dQ and dK
// through the softcap and the scale. Hidden keys are never read; a row that sees no key contributes zero. `threads` share
// the KV heads; 0: one a processor.
Gradients reference_backward(const AttentionInputs& inputs, const OutputGradients& gradients, int threads = 0);
// The forward's out and lse [batch][heads_q][seq_q][1].
struct ForwardResults {
    TensorView out, lse;
};
// The same as a straightforward implementation would: in float32, with P = exp(S - lse) from what the forward gave, with P, dS and O rounded to the
// element type before the products that take them, and the gradients of query, key and value after.
Gradients naive_backward(const AttentionInputs& inputs, const OutputGradients& gradients, const ForwardResults& results, int threads = 0);

// Some rows of the gradients, for problems that are too large for all of them: those of the queries and of the keys that are listed, in the lists'
// order, with P = exp(S - lse) and D from what the forward gave. dSink is whole.
Gradients reference_gradient_rows(const AttentionInputs& inputs, const OutputGradients& gradients, const ForwardResults& results, std::span<const RowIndex> queries,
                                  std::span<const RowIndex> keys, int threads = 0);
Gradients naive_gradient_rows(const AttentionInputs& inputs, const OutputGradients& gradients, const ForwardResults& results, std::span<const RowIndex> queries,
                              std::span<const RowIndex> keys, int threads = 0);

}  // namespace tilewright
