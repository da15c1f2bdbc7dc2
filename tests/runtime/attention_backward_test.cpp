// The public backward call: gradients by hand, against differences of the forward call, and one sentence for each bad input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/opened.h"

namespace tilewright {
namespace {

class BackwardCall : public testing::Test {
protected:
    static Attention& attention() { return cpu(); }
    // Floats of one batch, dense, with some deterministic pattern in the inputs.
    void make(const char* text) {
        problem = *parse_problem(std::string("backward:") + text);
        const Problem& p = problem;
        auto fill = [](std::vector<float>& x, int64_t count, double step) {
            x.resize(static_cast<size_t>(count));
            for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(step * static_cast<double>(i + 1)));
        };
        fill(query, p.heads_q * p.seq_q * p.head_dim, 0.7), fill(key, p.heads_kv * p.seq_kv * p.head_dim, 1.3);
        fill(value, p.heads_kv * p.seq_kv * p.head_dim_v, 2.1), fill(out_gradient, p.heads_q * p.seq_q * p.head_dim_v, 0.9);
        fill(sink, p.heads_q, 1);
        out.assign(out_gradient.size(), NAN), lse.assign(static_cast<size_t>(p.heads_q * p.seq_q), NAN);
        query_gradient.assign(query.size(), NAN), key_gradient.assign(key.size(), NAN), value_gradient.assign(value.size(), NAN);
        sink_gradient.assign(sink.size(), NAN);
        workspace.assign(static_cast<size_t>(*attention().backward_workspace_bytes(p)), 'x');
        tensors = {};
        ForwardTensors& f = tensors.forward;
        auto in = [](const std::vector<float>& x, int64_t heads, int64_t rows, int64_t columns) { return dense(static_cast<const void*>(x.data()), heads, rows, columns); };
        auto to = [](std::vector<float>& x, int64_t heads, int64_t rows, int64_t columns) { return dense(static_cast<void*>(x.data()), heads, rows, columns); };
        f.query = in(query, p.heads_q, p.seq_q, p.head_dim), f.key = in(key, p.heads_kv, p.seq_kv, p.head_dim);
        f.value = in(value, p.heads_kv, p.seq_kv, p.head_dim_v), f.out = to(out, p.heads_q, p.seq_q, p.head_dim_v);
        f.lse = lse.data(), f.sink = p.sink ? sink.data() : nullptr, f.scale = 1.0f;
        tensors.out_gradient = in(out_gradient, p.heads_q, p.seq_q, p.head_dim_v);
        tensors.query_gradient = to(query_gradient, p.heads_q, p.seq_q, p.head_dim), tensors.key_gradient = to(key_gradient, p.heads_kv, p.seq_kv, p.head_dim);
        tensors.value_gradient = to(value_gradient, p.heads_kv, p.seq_kv, p.head_dim_v);
        tensors.sink_gradient = p.sink ? sink_gradient.data() : nullptr;
        tensors.workspace = workspace.data(), tensors.workspace_bytes = static_cast<int64_t>(workspace.size());
    }
    void forward() {
        Problem p = problem;
        p.operation = Operation::forward;
        Status status = attention().forward(p, tensors.forward);
        ASSERT_TRUE(status.ok()) << status.message();
    }
    double loss() {
        forward();
        double sum = 0;
        for (size_t i = 0; i < out.size(); ++i) sum += static_cast<double>(out[i]) * static_cast<double>(out_gradient[i]);
        return sum;
    }
    void expect_differences(std::vector<float>& x, const std::vector<float>& gradient) {
        for (size_t i = 0; i < x.size(); i += 3) {
            float before = x[i];
            x[i] = before + 0.01f;
            double up = loss();
            x[i] = before - 0.01f;
            double down = loss();
            x[i] = before;
            EXPECT_NEAR(gradient[i], (up - down) / 0.02, 2e-3) << i;
        }
    }
    std::string error() {
        Status status = attention().backward(problem, tensors);
        EXPECT_EQ(status.code(), StatusCode::invalid_argument);
        return status.message();
    }

    Problem problem;
    BackwardTensors tensors;
    std::vector<float> query, key, value, out, lse, out_gradient, query_gradient, key_gradient, value_gradient, sink, sink_gradient;
    std::vector<char> workspace;
};

TEST_F(BackwardCall, GivesRowsThatSeeNothingNoPart) {
    make("sq5,skv2,d8,fp32,causal");
    std::fill(query.begin(), query.end(), 0.0f);
    forward();
    Status status = attention().backward(problem, tensors);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_THAT(std::vector<float>(query_gradient.begin(), query_gradient.begin() + 3 * 8), testing::Each(0.0f));
    EXPECT_THAT(key_gradient, testing::Each(0.0f));
    for (size_t d = 0; d < 8; ++d) {
        EXPECT_FLOAT_EQ(value_gradient[d], out_gradient[3 * 8 + d] + out_gradient[4 * 8 + d] / 2);
        EXPECT_FLOAT_EQ(value_gradient[8 + d], out_gradient[4 * 8 + d] / 2);
    }
}

TEST_F(BackwardCall, EqualsDifferencesOfTheForwardCall) {
    make("hq4,hkv2,sq9,skv11,d8,fp32,causal,sink");
    forward();
    Status status = attention().backward(problem, tensors);
    ASSERT_TRUE(status.ok()) << status.message();
    expect_differences(query, query_gradient);
    expect_differences(key, key_gradient);
    expect_differences(value, value_gradient);
    expect_differences(sink, sink_gradient);
}

TEST_F(BackwardCall, NamesWhatIsWrong) {
    make("sq5,skv5,d8,fp32,sink");
    tensors.workspace = nullptr;
    EXPECT_EQ(error(), "the workspace has 0 bytes; it must have 1024");
    make("sq5,skv5,d8,fp32,sink");
    tensors.workspace_bytes = 1023;
    EXPECT_EQ(error(), "the workspace has 1023 bytes; it must have 1024");
    make("sq5,skv5,d8,fp32,sink");
    tensors.forward.lse = nullptr;
    EXPECT_EQ(error(), "lse is null; the backward needs that of the forward");
    make("sq5,skv5,d8,fp32,sink");
    tensors.sink_gradient = nullptr;
    EXPECT_EQ(error(), "sink_gradient is null, but the problem has one");
    make("sq5,skv5,d8,fp32");
    tensors.key_gradient.column_stride = 2;
    EXPECT_EQ(error(), "the last stride of key_gradient is 2; it must be 1");
    make("sq5,skv5,d8,fp32");
    tensors.query_gradient.data = nullptr;
    EXPECT_EQ(error(), "query_gradient is null, but the problem gives it elements");
}

TEST_F(BackwardCall, SumsTheGradientOfABiasOverDimensionsOfStrideZero) {
    make("b1,hq4,hkv2,sq9,skv11,d8,fp32,causal,bias");
    std::vector<float> bias(9 * 11), bias_gradient(bias.size(), NAN), whole(4 * bias.size(), NAN), kept = key_gradient;
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(std::cos(static_cast<double>(i)));
    tensors.forward.bias = {bias.data(), 0, 0, 11, 1};  // one for all heads
    forward();
    tensors.bias_gradient = {whole.data(), 0, 99, 11, 1};
    ASSERT_TRUE(attention().backward(problem, tensors).ok());
    kept = key_gradient;
    tensors.bias_gradient = {bias_gradient.data(), 0, 0, 11, 1};
    ASSERT_TRUE(attention().backward(problem, tensors).ok());
    for (size_t i = 0; i < bias.size(); ++i) EXPECT_NEAR(bias_gradient[i], whole[i] + whole[i + 99] + whole[i + 198] + whole[i + 297], 1e-5) << i;
    expect_differences(bias, bias_gradient);
    tensors.bias_gradient = {};  // not wanted
    key_gradient.assign(kept.size(), NAN);
    forward();
    ASSERT_TRUE(attention().backward(problem, tensors).ok());
    EXPECT_EQ(key_gradient, kept);
}

TEST_F(BackwardCall, RefusesAForwardProblemAndAGradientOfNoBias) {
    make("sq5,skv5,d8,fp32");
    problem.operation = Operation::forward;
    EXPECT_EQ(attention().backward(problem, tensors).code(), StatusCode::unsupported);
    problem.operation = Operation::backward;
    EXPECT_EQ(attention().forward(problem, tensors.forward).code(), StatusCode::unsupported);
    tensors.bias_gradient.data = query_gradient.data();
    EXPECT_EQ(error(), "bias_gradient is given, but the problem has none");
}

}  // namespace
}  // namespace tilewright
