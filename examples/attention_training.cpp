// Training with the backward: one causal attention head between two linear maps learns to repeat the token before. Every product of the head goes through
// attention; a float64 twin of the whole model, in plain loops, must lose as much at every step.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "tilewright/attention.h"

using namespace tilewright;

namespace {

constexpr size_t tokens = 48, dim = 16;
constexpr int steps = 60;
constexpr double rate = 0.5;

// out[tokens][dim] = x[tokens][dim] w[dim][dim], and its gradients.
template <class Real>
void multiply(const std::vector<Real>& x, const std::vector<Real>& w, std::vector<Real>& out) {
    for (size_t t = 0; t < tokens; ++t)
        for (size_t j = 0; j < dim; ++j) {
            Real sum = 0;
            for (size_t i = 0; i < dim; ++i) sum += x[t * dim + i] * w[i * dim + j];
            out[t * dim + j] = sum;
        }
}
template <class Real>
void learn(const std::vector<Real>& x, const std::vector<Real>& out_gradient, std::vector<Real>& w) {
    for (size_t i = 0; i < dim; ++i)
        for (size_t j = 0; j < dim; ++j) {
            Real sum = 0;
            for (size_t t = 0; t < tokens; ++t) sum += x[t * dim + i] * out_gradient[t * dim + j];
            w[i * dim + j] -= static_cast<Real>(rate) * sum;
        }
}

// query, key and value are x times a matrix each; the loss is the mean square of out - target.
template <class Real>
struct Model {
    std::vector<Real> x, target, weights[3], rows[3], gradients[3], out, out_gradient;  // of query, key, value

    explicit Model(unsigned seed) {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal;
        for (std::vector<Real>* all : {&x, &target, &out, &out_gradient}) all->resize(tokens * dim);
        for (Real& e : x) e = static_cast<Real>(static_cast<float>(normal(random)));
        for (size_t i = 0; i < x.size(); ++i) target[i] = i < dim ? x[i] : x[i - dim];
        for (int n = 0; n < 3; ++n) {
            rows[n].resize(tokens * dim), gradients[n].resize(tokens * dim), weights[n].resize(dim * dim);
            for (Real& w : weights[n]) w = static_cast<Real>(static_cast<float>(normal(random) / 4));
        }
    }
    void project() {
        for (int n = 0; n < 3; ++n) multiply(x, weights[n], rows[n]);
    }
    double loss() {
        double sum = 0;
        for (size_t i = 0; i < out.size(); ++i) {
            Real difference = out[i] - target[i];
            sum += static_cast<double>(difference * difference);
            out_gradient[i] = 2 * difference / static_cast<Real>(out.size());
        }
        return sum / static_cast<double>(out.size());
    }
    void update() {
        for (int n = 0; n < 3; ++n) learn(x, gradients[n], weights[n]);
    }
};

// The head and its gradients by definition.
double reference_step(Model<double>& m) {
    m.project();
    std::vector<double> probability(tokens * tokens, 0);
    double scale = 1 / std::sqrt(static_cast<double>(dim));
    auto dot = [](const double* a, const double* b) {
        double sum = 0;
        for (size_t d = 0; d < dim; ++d) sum += a[d] * b[d];
        return sum;
    };
    for (size_t i = 0; i < tokens; ++i) {
        double total = 0;
        for (size_t j = 0; j <= i; ++j) total += probability[i * tokens + j] = std::exp(scale * dot(&m.rows[0][i * dim], &m.rows[1][j * dim]));
        for (size_t d = 0; d < dim; ++d) m.out[i * dim + d] = 0;
        for (size_t j = 0; j <= i; ++j) {
            probability[i * tokens + j] /= total;
            for (size_t d = 0; d < dim; ++d) m.out[i * dim + d] += probability[i * tokens + j] * m.rows[2][j * dim + d];
        }
    }
    double loss = m.loss();
    for (std::vector<double>& gradient : m.gradients) gradient.assign(gradient.size(), 0);
    for (size_t i = 0; i < tokens; ++i) {
        double mean = dot(&m.out_gradient[i * dim], &m.out[i * dim]);
        for (size_t j = 0; j <= i; ++j) {
            double p = probability[i * tokens + j], change = scale * p * (dot(&m.out_gradient[i * dim], &m.rows[2][j * dim]) - mean);
            for (size_t d = 0; d < dim; ++d) {
                m.gradients[0][i * dim + d] += change * m.rows[1][j * dim + d];
                m.gradients[1][j * dim + d] += change * m.rows[0][i * dim + d];
                m.gradients[2][j * dim + d] += p * m.out_gradient[i * dim + d];
            }
        }
    }
    m.update();
    return loss;
}

Result<double> attention_step(Attention& attention, const Problem& forward, const Problem& backward, void* workspace, int64_t workspace_bytes, Model<float>& m) {
    m.project();
    std::vector<float> lse(tokens);
    auto in = [](const std::vector<float>& rows) { return dense(static_cast<const void*>(rows.data()), 1, tokens, dim); };
    auto to = [](std::vector<float>& rows) { return dense(static_cast<void*>(rows.data()), 1, tokens, dim); };
    BackwardTensors tensors;
    ForwardTensors& f = tensors.forward;
    f.query = in(m.rows[0]), f.key = in(m.rows[1]), f.value = in(m.rows[2]), f.out = to(m.out), f.lse = lse.data();
    TILEWRIGHT_RETURN_IF_ERROR(attention.forward(forward, f));
    double loss = m.loss();
    tensors.out_gradient = in(m.out_gradient);
    tensors.query_gradient = to(m.gradients[0]), tensors.key_gradient = to(m.gradients[1]), tensors.value_gradient = to(m.gradients[2]);
    tensors.workspace = workspace, tensors.workspace_bytes = workspace_bytes;
    TILEWRIGHT_RETURN_IF_ERROR(attention.backward(backward, tensors));
    m.update();
    return loss;
}

Status run() {
    TILEWRIGHT_ASSIGN_OR_RETURN(Attention attention, Attention::open());
    const std::string sizes = "b1,hq1,sq" + std::to_string(tokens) + ",d" + std::to_string(dim) + ",fp32,causal";
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem forward, parse_problem("forward:" + sizes));
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem backward, parse_problem("backward:" + sizes));
    TILEWRIGHT_ASSIGN_OR_RETURN(int64_t workspace_bytes, attention.backward_workspace_bytes(backward));
    TILEWRIGHT_ASSIGN_OR_RETURN(void* workspace, attention.allocate(workspace_bytes));
    Model<float> model(1);
    Model<double> twin(1);
    double first = 0, last = 0, apart = 0;
    for (int step = 0; step < steps; ++step) {
        TILEWRIGHT_ASSIGN_OR_RETURN(last, attention_step(attention, forward, backward, workspace, workspace_bytes, model));
        double expected = reference_step(twin);
        if (step == 0) first = last;
        apart = std::max(apart, std::abs(last - expected) / expected);
        if (step % 10 == 0) std::printf("step %2d: loss %.6f, in float64 %.6f\n", step, last, expected);
    }
    TILEWRIGHT_RETURN_IF_ERROR(attention.free(workspace));
    std::printf("loss %.4f -> %.4f, at most %.1e from float64\n", first, last, apart);
    if (last < 0.7 * first && apart < 1e-4) return {};
    return {StatusCode::internal, "the loss did not fall as it should"};
}

}  // namespace

int main() {
    Status status = run();
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
    return status.ok() ? 0 : 1;
}
