// The gradients of attention, in plain loops.
#include "verify/reference_backward.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "verify/element.h"
#include "verify/parallel.h"

namespace tilewright {
namespace {

using Row = std::vector<float>;

Row load(const TensorView& tensor, int64_t batch, int64_t head, int64_t row, int64_t columns) {
    Row to(static_cast<size_t>(columns));
    load_elements(tensor.dtype, tensor.address(batch, head, row, 0), tensor.strides[3], columns, to.data());
    return to;
}

// One query of one head with its output's gradient; one key with its value.
struct QueryRow {
    int64_t batch, head, index;
    Row query, out_gradient;
};
struct KeyRow {
    int64_t index;
    Row key, value;
};

// A (query, key) pair: its score, and d score / d (scale * dot), which only a softcap makes different from 1.
template <class Real>
struct Score {
    Real value, slope;
    bool hidden = false;  // by a bias of -infinity; a score of -infinity that query or key make is seen
};

// The largest of what gradients sum up.
struct Terms {
    double of_products = 0, of_bias = 0;
    void take(const Terms& other) { of_products = std::max(of_products, other.of_products), of_bias = std::max(of_bias, other.of_bias); }
};

// Real is double for the reference, float for the naive form, which also rounds operands.
template <class Real>
class Backward {
    static constexpr Real infinity = std::numeric_limits<Real>::infinity();

public:
    Backward(const AttentionInputs& inputs, const OutputGradients& given) : in_(inputs), p_(inputs.problem), given_(given) {}
    Terms largest;

    QueryRow query_row(int64_t b, int64_t h, int64_t i) const { return {b, h, i, load(in_.query, b, h, i, p_.head_dim), load(given_.out, b, h, i, p_.head_dim_v)}; }
    KeyRow key_row(int64_t b, int64_t kv_head, int64_t j) const { return {j, load(in_.key, b, kv_head, j, p_.head_dim), load(in_.value, b, kv_head, j, p_.head_dim_v)}; }
    Real rounded(Real x) const {
        if constexpr (std::is_same_v<Real, float>) return float(round_to(p_.dtype, x));
        else return x;
    }

    Score<Real> score(const QueryRow& q, const KeyRow& k) const {
        Real bias = p_.bias ? Real(in_.bias.at(q.batch, q.head, q.index, k.index)) : 0;
        if (bias == -infinity) return {-infinity, 0, true};
        Score<Real> s{in_.scale * dot(q.query, k.key), 1};
        if (p_.softcap) {
            Real bent = std::tanh(s.value / in_.softcap);
            s = {in_.softcap * bent, 1 - bent * bent};
        }
        s.value += bias;
        int64_t aligned = q.index + (p_.alignment == Alignment::bottom_right ? p_.seq_kv - p_.seq_q : 0);
        if (p_.alibi) s.value -= Real(in_.slope[q.head]) * Real(std::abs(aligned - k.index));
        return s;
    }
    static Real dot(const Row& x, const Row& y) {
        Real sum = 0;
        for (size_t d = 0; d < x.size(); ++d) sum += Real(x[d]) * Real(y[d]);
        return sum;
    }
    Real lse_gradient(const QueryRow& q) const { return given_.lse.data ? Real(given_.lse.at(q.batch, q.head, q.index, 0)) : 0; }

    // A pair's part of the gradients of its query, key and value, of those that are given; and of its score.
    Real add(const QueryRow& q, const KeyRow& k, Real probability, Real towards, Real delta, Real slope, double* query, double* key, double* value) {
        Real score_gradient = probability * (towards - delta), product_gradient = rounded(score_gradient * slope) * Real(in_.scale);
        double bias_term = double(std::abs(probability) * (std::abs(towards) + std::abs(delta))), weight = bias_term * double(std::abs(slope * Real(in_.scale))), factor = 0;
        if (std::isfinite(bias_term)) largest.take({0, bias_term});
        for (size_t d = 0; d < q.query.size(); ++d) {
            if (query) accumulate(query[d], product_gradient * Real(k.key[d]));
            if (key) accumulate(key[d], product_gradient * Real(q.query[d]));
            factor = std::max(factor, double(std::max(query ? std::abs(k.key[d]) : 0, key ? std::abs(q.query[d]) : 0)));
        }
        if (double term = weight * factor; std::isfinite(term)) largest.take({term, 0});
        for (size_t d = 0; value && d < q.out_gradient.size(); ++d) accumulate(value[d], probability * Real(q.out_gradient[d]));
        return score_gradient;
    }

private:
    static void accumulate(double& sum, Real x) { sum = double(Real(sum) + x); }

    const AttentionInputs& in_;
    const Problem& p_;
    const OutputGradients& given_;
};

// A query against keys and values that were loaded once. P comes from the log-sums of `results` as a kernel's does; without them, from the scores alone.
template <class Real>
void add_query(Backward<Real>& one, const AttentionInputs& inputs, const ForwardResults* results, const std::vector<KeyRow>& keys, const QueryRow& q, Gradients& g,
               double& sink_gradient) {
    constexpr Real infinity = std::numeric_limits<Real>::infinity();
    const Problem& p = inputs.problem;
    KeyRange range = visible_keys(p, q.index);
    std::vector<Score<Real>> scores;
    Real maximum = p.sink ? Real(inputs.sink[q.head]) : -infinity;
    for (int64_t j = range.begin; j < range.end; ++j) {
        scores.push_back(one.score(q, keys[size_t(j)]));
        if (scores.back().value > maximum) maximum = scores.back().value;
    }
    if (maximum == -infinity) maximum = 0;  // nothing visible, or NaN alone
    Real sum = p.sink ? std::exp(Real(inputs.sink[q.head]) - maximum) : 0;
    for (const Score<Real>& s : scores) sum += std::exp(s.value - maximum);
    if (sum == 0) return;
    if (results) maximum = Real(results->lse.at(q.batch, q.head, q.index, 0)), sum = 1;
    auto share_of = [&](Real score) { return std::exp(score - maximum) / sum; };

    std::vector<Real> probability(scores.size(), 0), towards(scores.size(), 0), out(size_t(p.head_dim_v), 0);  // P, dP
    for (size_t n = 0; n < scores.size(); ++n) {
        if (scores[n].hidden) continue;
        const KeyRow& k = keys[size_t(range.begin) + n];
        probability[n] = one.rounded(share_of(scores[n].value));
        towards[n] = one.dot(q.out_gradient, k.value);
        for (size_t d = 0; d < out.size(); ++d) out[d] += probability[n] * Real(k.value[d]);
    }
    Real delta = -one.lse_gradient(q);  // D
    for (size_t d = 0; d < out.size() && range.end > range.begin; ++d) delta += Real(q.out_gradient[d]) * one.rounded(out[d]);
    size_t kv_head = size_t(q.batch * p.heads_kv + q.head / (p.heads_q / p.heads_kv)), d_qk = size_t(p.head_dim), d_v = size_t(p.head_dim_v);
    size_t query_row = size_t((q.batch * p.heads_q + q.head) * p.seq_q + q.index);
    for (size_t n = 0; n < scores.size(); ++n) {
        if (scores[n].hidden) continue;
        size_t j = size_t(range.begin) + n, key_row = kv_head * size_t(p.seq_kv) + j;
        Real gradient = one.add(q, keys[j], probability[n], towards[n], delta, scores[n].slope, &g.query[query_row * d_qk], &g.key[key_row * d_qk], &g.value[key_row * d_v]);
        if (p.bias) g.bias[query_row * size_t(p.seq_kv) + j] = double(gradient);
    }
    if (p.sink) sink_gradient = -double(share_of(Real(inputs.sink[q.head])) * delta);
}

template <class Real>
void finish(const Problem& p, Gradients& g, const std::vector<Terms>& terms) {
    Terms largest;
    for (const Terms& term : terms) largest.take(term);
    g.largest_term = largest.of_products, g.largest_bias_term = largest.of_bias;
    if (std::is_same_v<Real, float>)
        for (std::vector<double>* gradient : {&g.query, &g.key, &g.value})
            for (double& x : *gradient) x = round_to(p.dtype, x);
    if (!p.sink) return g.sink_terms.clear();
    g.sink.resize(size_t(p.heads_q));
    for (size_t n = 0; n < g.sink_terms.size(); ++n) g.sink[n / size_t(p.seq_q) % size_t(p.heads_q)] += g.sink_terms[n];
}

template <class Real>
Gradients backward(const AttentionInputs& inputs, const OutputGradients& given, const ForwardResults* results, int threads) {
    const Problem& p = inputs.problem;
    Gradients g;
    g.query.resize(size_t(p.batch * p.heads_q * p.seq_q * p.head_dim));
    g.key.resize(size_t(p.batch * p.heads_kv * p.seq_kv * p.head_dim));
    g.value.resize(size_t(p.batch * p.heads_kv * p.seq_kv * p.head_dim_v));
    if (p.bias) g.bias.resize(size_t(p.batch * p.heads_q * p.seq_q * p.seq_kv));
    g.sink_terms.resize(size_t(p.batch * p.heads_q * p.seq_q));
    std::vector<Terms> terms(size_t(p.batch * p.heads_kv));
    int64_t group_size = p.heads_q / p.heads_kv;
    parallel_for(p.batch * p.heads_kv, threads, [&](int64_t n) {  // query heads that share a KV head add to the same rows
        Backward<Real> one(inputs, given);
        int64_t b = n / p.heads_kv, kv_head = n % p.heads_kv;
        std::vector<KeyRow> keys;
        for (int64_t j = 0; j < p.seq_kv; ++j) keys.push_back(one.key_row(b, kv_head, j));
        for (int64_t h = kv_head * group_size; h < (kv_head + 1) * group_size; ++h)
            for (int64_t i = 0; i < p.seq_q; ++i) add_query(one, inputs, results, keys, one.query_row(b, h, i), g, g.sink_terms[size_t((b * p.heads_q + h) * p.seq_q + i)]);
        terms[size_t(n)] = one.largest;
    });
    finish<Real>(p, g, terms);
    return g;
}

template <class Real>
Gradients gradient_rows(const AttentionInputs& inputs, const OutputGradients& given, const ForwardResults& results, std::span<const RowIndex> queries, std::span<const RowIndex> keys,
                        int threads) {
    constexpr Real infinity = std::numeric_limits<Real>::infinity();
    const Problem& p = inputs.problem;
    Gradients g;
    auto d_qk = static_cast<size_t>(p.head_dim), d_v = static_cast<size_t>(p.head_dim_v);
    g.query.resize(queries.size() * d_qk), g.key.resize(keys.size() * d_qk), g.value.resize(keys.size() * d_v);
    if (p.bias) g.bias.resize(queries.size() * size_t(p.seq_kv));
    g.sink_terms.resize(size_t(p.batch * p.heads_q * p.seq_q));
    std::vector<Terms> terms(queries.size() + keys.size());
    std::vector<Real> deltas(g.sink_terms.size()), log_sums(deltas.size());  // of every query
    auto place = [&](const QueryRow& q) { return size_t((q.batch * p.heads_q + q.head) * p.seq_q + q.index); };
    parallel_for(p.batch * p.heads_q, threads, [&](int64_t n) {
        Backward<Real> one(inputs, given);
        for (int64_t i = 0; i < p.seq_q; ++i) {
            QueryRow q = one.query_row(n / p.heads_q, n % p.heads_q, i);
            Real &lse = log_sums[place(q)], &delta = deltas[place(q)];
            lse = Real(results.lse.at(q.batch, q.head, i, 0)), delta = -one.lse_gradient(q);
            if (KeyRange visible = visible_keys(p, i); visible.end > visible.begin) delta += one.dot(q.out_gradient, load(results.out, q.batch, q.head, i, p.head_dim_v));
            if (p.sink && lse != -infinity) g.sink_terms[place(q)] = -double(std::exp(Real(inputs.sink[q.head]) - lse) * delta);
        }
    });
    auto add = [&](Backward<Real>& one, const QueryRow& q, const KeyRow& k, double* query, double* key, double* value) {
        Score<Real> s = one.score(q, k);
        Real lse = log_sums[place(q)];
        if (s.hidden || lse == -infinity) return Real(0);
        return one.add(q, k, one.rounded(std::exp(s.value - lse)), one.dot(q.out_gradient, k.value), deltas[place(q)], s.slope, query, key, value);
    };
    parallel_for(int64_t(queries.size()), threads, [&](int64_t n) {
        Backward<Real> one(inputs, given);
        QueryRow q = one.query_row(queries[size_t(n)].batch, queries[size_t(n)].head, queries[size_t(n)].query);
        KeyRange visible = visible_keys(p, q.index);
        for (int64_t j = visible.begin; j < visible.end; ++j) {
            Real gradient = add(one, q, one.key_row(q.batch, q.head / (p.heads_q / p.heads_kv), j), &g.query[size_t(n) * d_qk], nullptr, nullptr);
            if (p.bias) g.bias[size_t(n * p.seq_kv + j)] = double(gradient);
        }
        terms[size_t(n)] = one.largest;
    });
    parallel_for(int64_t(keys.size()), threads, [&](int64_t n) {
        Backward<Real> one(inputs, given);
        auto [b, kv_head, j] = keys[size_t(n)];
        KeyRow k = one.key_row(b, kv_head, j);
        int64_t group = p.heads_q / p.heads_kv;
        for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h)
            for (int64_t i = 0; i < p.seq_q; ++i)
                if (KeyRange visible = visible_keys(p, i); j >= visible.begin && j < visible.end)
                    add(one, one.query_row(b, h, i), k, nullptr, &g.key[size_t(n) * d_qk], &g.value[size_t(n) * d_v]);
        terms[queries.size() + size_t(n)] = one.largest;
    });
    finish<Real>(p, g, terms);
    return g;
}

}  // namespace

Gradients reference_backward(const AttentionInputs& inputs, const OutputGradients& given, int threads) { return backward<double>(inputs, given, nullptr, threads); }
Gradients naive_backward(const AttentionInputs& inputs, const OutputGradients& given, const ForwardResults& results, int threads) {
    return backward<float>(inputs, given, &results, threads);
}

Gradients reference_gradient_rows(const AttentionInputs& inputs, const OutputGradients& given, const ForwardResults& results, std::span<const RowIndex> queries,
                                  std::span<const RowIndex> keys, int threads) {
    return gradient_rows<double>(inputs, given, results, queries, keys, threads);
}
Gradients naive_gradient_rows(const AttentionInputs& inputs, const OutputGradients& given, const ForwardResults& results, std::span<const RowIndex> queries,
                              std::span<const RowIndex> keys, int threads) {
    return gradient_rows<float>(inputs, given, results, queries, keys, threads);
}

}  // namespace tilewright
