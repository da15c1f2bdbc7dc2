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

// One (query, key) pair: its score, and d score / d (scale * dot), which only a softcap makes different from 1.
template <class Real>
struct Score {
    Real value, slope;
};

// Real is double for the reference, float for the naive form, which also rounds operands.
template <class Real>
class Backward {
    static constexpr Real infinity = std::numeric_limits<Real>::infinity();

public:
    Backward(const AttentionInputs& inputs, const OutputGradients& given, Gradients& gradients) : in_(inputs), p_(inputs.problem), given_(given), out_(gradients) {}

    void row(int64_t b, int64_t h, int64_t i, double& sink_gradient) {
        KeyRange keys = visible_keys(p_, i);
        std::vector<Score<Real>> scores;
        Real maximum = p_.sink ? Real(in_.sink[h]) : -infinity;
        for (int64_t j = keys.begin; j < keys.end; ++j) {
            scores.push_back(score(b, h, i, j));
            if (scores.back().value > maximum) maximum = scores.back().value;
        }
        if (maximum == -infinity) maximum = 0;  // nothing visible, or NaN alone
        Real sink = p_.sink ? std::exp(Real(in_.sink[h]) - maximum) : 0, sum = sink;
        for (const Score<Real>& s : scores) sum += std::exp(s.value - maximum);
        if (sum == 0) return;

        std::vector<Real> probability(scores.size(), 0), towards(scores.size(), 0);  // P and dP
        std::vector<Real> out(size_t(p_.head_dim_v), 0);
        Real mean = given_.lse.data ? -Real(given_.lse.at(b, h, i, 0)) : 0;  // D
        for (size_t n = 0; n < scores.size(); ++n) {
            if (scores[n].value == -infinity) continue;
            probability[n] = rounded(std::exp(scores[n].value - maximum) / sum);
            for (int64_t d = 0; d < p_.head_dim_v; ++d) {
                Real v = Real(value(b, h, keys.begin + int64_t(n), d));
                towards[n] += Real(given_.out.at(b, h, i, d)) * v, out[size_t(d)] += probability[n] * v;
            }
        }
        if (keys.end > keys.begin)
            for (int64_t d = 0; d < p_.head_dim_v; ++d) mean += Real(given_.out.at(b, h, i, d)) * rounded(out[size_t(d)]);
        for (size_t n = 0; n < scores.size(); ++n)
            if (scores[n].value != -infinity)
                add(b, h, i, keys.begin + int64_t(n), probability[n], towards[n], mean, scores[n].slope);
        sink_gradient -= double(sink / sum * mean);
    }
    double largest_term = 0;

private:
    Real rounded(Real x) const {
        if constexpr (std::is_same_v<Real, float>) return float(round_to(p_.dtype, x));
        else return x;
    }
    static void accumulate(double& sum, Real x) { sum = double(Real(sum) + x); }

    int64_t kv_head(int64_t h) const { return h / (p_.heads_q / p_.heads_kv); }
    double value(int64_t b, int64_t h, int64_t j, int64_t d) const { return in_.value.at(b, kv_head(h), j, d); }

    Score<Real> score(int64_t b, int64_t h, int64_t i, int64_t j) const {
        Real bias = p_.bias ? Real(in_.bias.at(b, h, i, j)) : 0;
        if (bias == -infinity) return {-infinity, 0};
        Real dot = 0;
        for (int64_t d = 0; d < p_.head_dim; ++d) dot += Real(in_.query.at(b, h, i, d)) * Real(in_.key.at(b, kv_head(h), j, d));
        Score<Real> s{in_.scale * dot, 1};
        if (p_.softcap) {
            Real bent = std::tanh(s.value / in_.softcap);
            s = {in_.softcap * bent, 1 - bent * bent};
        }
        s.value += bias;
        int64_t aligned = i + (p_.alignment == Alignment::bottom_right ? p_.seq_kv - p_.seq_q : 0);
        if (p_.alibi) s.value -= Real(in_.slope[h]) * Real(std::abs(aligned - j));
        return s;
    }

    void add(int64_t b, int64_t h, int64_t i, int64_t j, Real probability, Real towards, Real mean, Real slope) {
        Real score_gradient = probability * (towards - mean);
        size_t query_row = size_t((b * p_.heads_q + h) * p_.seq_q + i), key_row = size_t((b * p_.heads_kv + kv_head(h)) * p_.seq_kv + j);
        size_t d_qk = size_t(p_.head_dim), d_v = size_t(p_.head_dim_v);
        if (p_.bias) out_.bias[query_row * size_t(p_.seq_kv) + size_t(j)] = double(score_gradient);
        Real product_gradient = rounded(score_gradient * slope) * Real(in_.scale);
        for (size_t d = 0; d < d_qk; ++d) {
            Real k = Real(in_.key.at(b, kv_head(h), j, int64_t(d))), q = Real(in_.query.at(b, h, i, int64_t(d)));
            accumulate(out_.query[query_row * d_qk + d], product_gradient * k);
            accumulate(out_.key[key_row * d_qk + d], product_gradient * q);
            double term = double(std::abs(probability * slope * Real(in_.scale)) * (std::abs(towards) + std::abs(mean)) * std::max(std::abs(q), std::abs(k)));
            if (std::isfinite(term)) largest_term = std::max(largest_term, term);
        }
        for (size_t d = 0; d < d_v; ++d) accumulate(out_.value[key_row * d_v + d], probability * Real(given_.out.at(b, h, i, int64_t(d))));
    }

    const AttentionInputs& in_;
    const Problem& p_;
    const OutputGradients& given_;
    Gradients& out_;
};

template <class Real>
Gradients backward(const AttentionInputs& inputs, const OutputGradients& given, int threads) {
    const Problem& p = inputs.problem;
    Gradients g;
    g.query.resize(size_t(p.batch * p.heads_q * p.seq_q * p.head_dim));
    g.key.resize(size_t(p.batch * p.heads_kv * p.seq_kv * p.head_dim));
    g.value.resize(size_t(p.batch * p.heads_kv * p.seq_kv * p.head_dim_v));
    if (p.bias) g.bias.resize(size_t(p.batch * p.heads_q * p.seq_q * p.seq_kv));
    std::vector<double> sinks(size_t(p.batch * p.heads_q)), terms(size_t(p.batch * p.heads_kv));
    int64_t group_size = p.heads_q / p.heads_kv;
    parallel_for(p.batch * p.heads_kv, threads, [&](int64_t n) {  // query heads that share a KV head add to the same rows
        Backward<Real> one(inputs, given, g);
        int64_t b = n / p.heads_kv, first = n % p.heads_kv * group_size;
        for (int64_t h = first; h < first + group_size; ++h)
            for (int64_t i = 0; i < p.seq_q; ++i) one.row(b, h, i, sinks[size_t(b * p.heads_q + h)]);
        terms[size_t(n)] = one.largest_term;
    });
    for (double term : terms) g.largest_term = std::max(g.largest_term, term);
    if (std::is_same_v<Real, float>)
        for (std::vector<double>* gradient : {&g.query, &g.key, &g.value})
            for (double& x : *gradient) x = round_to(p.dtype, x);
    if (!p.sink) return g;
    g.sink.resize(size_t(p.heads_q));
    for (size_t n = 0; n < sinks.size(); ++n) g.sink[n % size_t(p.heads_q)] += sinks[n];
    return g;
}

}  // namespace

Gradients reference_backward(const AttentionInputs& inputs, const OutputGradients& given, int threads) { return backward<double>(inputs, given, threads); }
Gradients naive_backward(const AttentionInputs& inputs, const OutputGradients& given, int threads) { return backward<float>(inputs, given, threads); }

}  // namespace tilewright
