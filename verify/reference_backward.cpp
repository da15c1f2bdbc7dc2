// The gradients of attention, in plain float64 loops.
#include "verify/reference_backward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/parallel.h"

namespace tilewright {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// One (query, key) pair: its score, and d score / d (scale * dot), which only a softcap makes different from 1.
struct Score {
    double value, slope;
};

class Backward {
public:
    Backward(const AttentionInputs& inputs, const OutputGradients& given, Gradients& gradients) : in_(inputs), p_(inputs.problem), given_(given), out_(gradients) {}

    void row(int64_t b, int64_t h, int64_t i, double& sink_gradient) {
        KeyRange keys = visible_keys(p_, i);
        std::vector<Score> scores;
        double maximum = p_.sink ? double(in_.sink[h]) : -infinity;
        for (int64_t j = keys.begin; j < keys.end; ++j) {
            scores.push_back(score(b, h, i, j));
            if (scores.back().value > maximum) maximum = scores.back().value;
        }
        if (maximum == -infinity) maximum = 0;  // nothing visible, or NaN alone
        double sink = p_.sink ? std::exp(in_.sink[h] - maximum) : 0, sum = sink;
        for (const Score& s : scores) sum += std::exp(s.value - maximum);
        if (sum == 0) return;

        std::vector<double> probability(scores.size(), 0), towards(scores.size(), 0);  // P and dP
        double mean = given_.lse.data ? -given_.lse.at(b, h, i, 0) : 0;                // D
        for (size_t n = 0; n < scores.size(); ++n) {
            if (scores[n].value == -infinity) continue;
            probability[n] = std::exp(scores[n].value - maximum) / sum;
            for (int64_t d = 0; d < p_.head_dim_v; ++d) towards[n] += given_.out.at(b, h, i, d) * value(b, h, keys.begin + int64_t(n), d);
            mean += probability[n] * towards[n];
        }
        for (size_t n = 0; n < scores.size(); ++n)
            if (scores[n].value != -infinity) add(b, h, i, keys.begin + int64_t(n), probability[n], probability[n] * (towards[n] - mean), scores[n].slope);
        sink_gradient -= sink / sum * mean;
    }

private:
    int64_t kv_head(int64_t h) const { return h / (p_.heads_q / p_.heads_kv); }
    double value(int64_t b, int64_t h, int64_t j, int64_t d) const { return in_.value.at(b, kv_head(h), j, d); }

    Score score(int64_t b, int64_t h, int64_t i, int64_t j) const {
        double bias = p_.bias ? in_.bias.at(b, h, i, j) : 0;
        if (bias == -infinity) return {-infinity, 0};
        double dot = 0;
        for (int64_t d = 0; d < p_.head_dim; ++d) dot += in_.query.at(b, h, i, d) * in_.key.at(b, kv_head(h), j, d);
        Score s{in_.scale * dot, 1};
        if (p_.softcap) {
            double bent = std::tanh(s.value / in_.softcap);
            s = {in_.softcap * bent, 1 - bent * bent};
        }
        s.value += bias;
        int64_t aligned = i + (p_.alignment == Alignment::bottom_right ? p_.seq_kv - p_.seq_q : 0);
        if (p_.alibi) s.value -= double(in_.slope[h]) * double(std::abs(aligned - j));
        return s;
    }

    void add(int64_t b, int64_t h, int64_t i, int64_t j, double probability, double score_gradient, double slope) {
        size_t query_row = size_t((b * p_.heads_q + h) * p_.seq_q + i), key_row = size_t((b * p_.heads_kv + kv_head(h)) * p_.seq_kv + j);
        size_t d_qk = size_t(p_.head_dim), d_v = size_t(p_.head_dim_v);
        if (p_.bias) out_.bias[query_row * size_t(p_.seq_kv) + size_t(j)] = score_gradient;
        double product_gradient = score_gradient * slope * double(in_.scale);
        for (size_t d = 0; d < d_qk; ++d) {
            out_.query[query_row * d_qk + d] += product_gradient * in_.key.at(b, kv_head(h), j, int64_t(d));
            out_.key[key_row * d_qk + d] += product_gradient * in_.query.at(b, h, i, int64_t(d));
        }
        for (size_t d = 0; d < d_v; ++d) out_.value[key_row * d_v + d] += probability * given_.out.at(b, h, i, int64_t(d));
    }

    const AttentionInputs& in_;
    const Problem& p_;
    const OutputGradients& given_;
    Gradients& out_;
};

}  // namespace

Gradients reference_backward(const AttentionInputs& inputs, const OutputGradients& given, int threads) {
    const Problem& p = inputs.problem;
    Gradients g;
    g.query.resize(size_t(p.batch * p.heads_q * p.seq_q * p.head_dim));
    g.key.resize(size_t(p.batch * p.heads_kv * p.seq_kv * p.head_dim));
    g.value.resize(size_t(p.batch * p.heads_kv * p.seq_kv * p.head_dim_v));
    if (p.bias) g.bias.resize(size_t(p.batch * p.heads_q * p.seq_q * p.seq_kv));
    std::vector<double> sinks(size_t(p.batch * p.heads_q));
    int64_t group_size = p.heads_q / p.heads_kv;
    parallel_for(p.batch * p.heads_kv, threads, [&](int64_t n) {  // query heads that share a KV head add to the same rows
        Backward backward(inputs, given, g);
        int64_t b = n / p.heads_kv, first = n % p.heads_kv * group_size;
        for (int64_t h = first; h < first + group_size; ++h)
            for (int64_t i = 0; i < p.seq_q; ++i) backward.row(b, h, i, sinks[size_t(b * p.heads_q + h)]);
    });
    if (!p.sink) return g;
    g.sink.resize(size_t(p.heads_q));
    for (size_t n = 0; n < sinks.size(); ++n) g.sink[n % size_t(p.heads_q)] += sinks[n];
    return g;
}

}  // namespace tilewright
