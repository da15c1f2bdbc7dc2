// The float64 gradients against answers by hand and against finite differences of the float64 forward.
#include "verify/reference_backward.h"

#include <gmock/gmock.h>

#include <cmath>

#include "verify/random.h"
#include "verify/workload.h"

namespace tilewright {
namespace {

// Random dO and dLSE, dense.
struct Given {
    std::vector<float> out, lse;
    OutputGradients views;
};
Given random_gradients(const Problem& p) {
    Given given;
    size_t rows = size_t(p.batch * p.heads_q * p.seq_q);
    for (size_t i = 0; i < rows * size_t(p.head_dim_v); ++i) given.out.push_back(float(normal(9, 1, i)));
    for (size_t i = 0; i < rows; ++i) given.lse.push_back(float(normal(9, 2, i)));
    auto view = [&](const std::vector<float>& data, int64_t columns) {
        return TensorView{reinterpret_cast<const unsigned char*>(data.data()), DType::fp32, {p.heads_q * p.seq_q * columns, p.seq_q * columns, columns, 1}};
    };
    given.views = {view(given.out, p.head_dim_v), view(given.lse, 1)};
    return given;
}

double loss(const Workload& w, const Given& given) {
    Answer a = reference_forward(w.inputs(), all_rows(w.problem), 1);
    double sum = 0;
    for (size_t i = 0; i < a.out.size(); ++i) sum += a.out[i] * double(given.out[i]);
    for (size_t i = 0; i < a.lse.size(); ++i) sum += std::isfinite(a.lse[i]) ? a.lse[i] * double(given.lse[i]) : 0;
    return sum;
}

// d loss / d one element, by a central difference; the step is what float32 elements really change by.
double difference(Workload& w, const Given& given, const Tensor& tensor, int64_t b, int64_t h, int64_t i, int64_t d) {
    double x = w.get(tensor, b, h, i, d);
    w.set(tensor, b, h, i, d, x + 1e-3);
    double above = w.get(tensor, b, h, i, d), up = loss(w, given);
    w.set(tensor, b, h, i, d, x - 1e-3);
    double below = w.get(tensor, b, h, i, d), down = loss(w, given);
    w.set(tensor, b, h, i, d, x);
    return (up - down) / (above - below);
}

void expect_differences(Workload& w, const Given& given, const Tensor& tensor, const std::vector<double>& gradient, const char* what) {
    auto [batch, heads, rows, columns] = tensor.sizes;
    size_t n = 0;
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < heads; ++h)
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t d = 0; d < columns; ++d, ++n)
                    EXPECT_NEAR(gradient.at(n), difference(w, given, tensor, b, h, i, d), 2e-5) << what << " " << b << " " << h << " " << i << " " << d;
    EXPECT_EQ(n, gradient.size());
}

TEST(ReferenceBackward, EqualsFiniteDifferencesOfTheForward) {
    for (const char* text : {"b2,hq4,hkv2,sq4,skv5,d3,dv2,fp32,causal", "hq2,hkv1,sq6,skv3,d3,dv4,fp32,causal", "b2,hq2,hkv2,sq4,skv6,d3,dv2,fp32,window2:1,softcap,bias,alibi,sink",
                             "hq2,hkv1,sq5,skv4,d2,dv3,fp32,topleft,window1:0,sink"}) {
        Problem p = *parse_problem(std::string("forward:") + text);
        WorkloadOptions options;
        options.softcap = 2;
        Workload w = make_workload(p, options);
        if (p.bias) w.set(w.bias, 0, 1, 2, 3, -INFINITY);
        Given given = random_gradients(p);
        Gradients g = reference_backward(w.inputs(), given.views, 2);
        expect_differences(w, given, w.query, g.query, "query");
        expect_differences(w, given, w.key, g.key, "key");
        expect_differences(w, given, w.value, g.value, "value");
        if (p.sink) expect_differences(w, given, w.sink, g.sink, "sink");
        if (!p.bias) continue;
        EXPECT_EQ(g.bias[size_t((1 * 4 + 2) * 6 + 3)], 0);
        w.set(w.bias, 0, 1, 2, 3, -1000);  // as good as hidden, and with a difference
        expect_differences(w, given, w.bias, g.bias, "bias");
    }
}

TEST(ReferenceBackward, RowsThatSeeNothingContributeZero) {
    Problem p = *parse_problem("forward:sq5,skv2,d1,fp32,causal");
    WorkloadOptions options;
    options.scale = 1;
    Workload w = make_workload(p, options);
    w.fill(w.query, 0);
    std::vector<float> out{1, 2, 4, 8, 16};
    OutputGradients given{{reinterpret_cast<const unsigned char*>(out.data()), DType::fp32, {5, 5, 1, 1}}, {}};
    Gradients g = reference_backward(w.inputs(), given);
    EXPECT_THAT(std::vector<double>(g.query.begin(), g.query.begin() + 3), testing::Each(0));
    EXPECT_THAT(g.value, testing::ElementsAre(8 + 16 / 2, 16 / 2));
    EXPECT_THAT(g.key, testing::Each(0));
}

TEST(ReferenceBackward, WhatIsHiddenIsNotRead) {
    Problem p = *parse_problem("forward:sq3,skv5,d2,fp32,causal,topleft");
    Workload w = make_workload(p);
    Given given = random_gradients(p);
    Gradients clean = reference_backward(w.inputs(), given.views);
    for (int64_t j = 3; j < 5; ++j) w.set(w.key, 0, 0, j, 0, NAN), w.set(w.value, 0, 0, j, 1, INFINITY);
    Gradients dirty = reference_backward(w.inputs(), given.views);
    EXPECT_EQ(clean.query, dirty.query);
    EXPECT_EQ(clean.key, dirty.key);
    EXPECT_EQ(clean.value, dirty.value);
}

}  // namespace
}  // namespace tilewright
