// Cases about what happens to a score between the product and the softmax.
#include <cmath>
#include <limits>

#include "verify/cases.h"
#include "verify/element.h"

namespace tilewright::cases {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void fill_bias_row(Workload& w, int64_t row, double number) {
    for (int64_t j = 0; j < w.problem.seq_kv; ++j) w.set(w.bias, 0, 0, row, j, number);
}

}  // namespace

Status lowest_bias(const CaseRunner& run) {
    double lowest = -largest_finite(run.dtype());
    Workload hand = run.counting("sq2,skv4,bias");
    fill_bias_row(hand, 0, -infinity);
    fill_bias_row(hand, 1, lowest);
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(hand, {0, 1.5}, {-infinity, lowest + std::log(4)}));
    Workload scattered = run.random("b2,hq2,sq70,skv150,bias");  // each key hidden or not
    for (int64_t i = 0; i < 70; ++i)
        for (int64_t j = 0; j < 150; ++j)
            if ((i * 7 + j * 5) % 3 == 0 || i == 11) scattered.set(scattered.bias, 1, 0, i, j, -infinity);
    return run.check(scattered);
}

Status extreme_bias(const CaseRunner& run) {
    double largest = largest_finite(run.dtype());
    Workload w = run.random("sq8,skv150,bias");
    for (int64_t i = 0; i < 7; ++i) fill_bias_row(w, i, i % 2 ? largest : -largest);
    for (int64_t j = 0; j < 150; ++j) {
        w.set(w.bias, 0, 0, 2, j, j < 75 ? -largest : largest);
        w.set(w.bias, 0, 0, 3, j, j == 20 ? largest : -largest);
        w.set(w.bias, 0, 0, 4, j, j == 140 ? 0 : -largest);
        w.set(w.bias, 0, 0, 5, j, j % 3 ? -infinity : largest);
    }
    return run.check(w);
}

Status scale_zero(const CaseRunner& run) {
    WorkloadOptions options;
    options.scale = 0;
    Workload hand = run.random("sq5", options);
    for (int64_t j = 0; j < 5; ++j)
        for (int64_t d = 0; d < hand.problem.head_dim_v; ++d) hand.set(hand.value, 0, 0, j, d, double(j));
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(hand, std::vector<double>(5, 2), std::vector<double>(5, std::log(5))));
    Workload masked = run.random("hq2,sq70,skv90,causal", options);
    return run.check(masked);
}

Status negative_scale(const CaseRunner& run) {
    WorkloadOptions options;
    for (float scale : {-0.125f, -2.0f}) {
        options.scale = scale;
        for (const char* text : {"hq2,sq70,skv150", "hq2,sq70,skv150,causal"}) {
            Workload w = run.random(text, options);
            TILEWRIGHT_RETURN_IF_ERROR(run.check(w));
        }
    }
    return {};
}

Status sink(const CaseRunner& run) {
    double e = std::exp(1);
    Workload hand = run.counting("sq1,skv3,sink");
    hand.set(hand.sink, 0, 0, 0, 0, 1);
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(hand, {3 / (3 + e)}, {std::log(3 + e)}, false));
    Workload empty = run.counting("sq5,skv2,causal,sink", 1);
    empty.set(empty.sink, 0, 0, 0, 0, 1);
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(empty, {0, 0, 0, 1 / (1 + e), 3 / (2 + e)}, {1, 1, 1, std::log(1 + e), std::log(2 + e)}, false));
    Workload heads = run.random("b2,hq8,hkv2,sq70,skv90,causal,sink");
    const double sinks[] = {0, 20, -20, 1000, -1000, 1e30, -1e30, -infinity};
    for (int64_t h = 0; h < 8; ++h) heads.set(heads.sink, 0, h, 0, 0, sinks[h]);
    for (int64_t h = 0; h < 8; ++h) {  // a tensor of its own each, so that 1e30 does not widen the others' bound
        Workload one = heads;
        one.problem.batch = 1;
        for (Tensor* tensor : {&one.query, &one.key, &one.value, &one.out, &one.lse}) tensor->sizes[0] = 1;
        keep_head(one, h);
        TILEWRIGHT_RETURN_IF_ERROR(at("a sink of " + std::to_string(sinks[h]), run.check(one)));
    }
    return {};
}

Status alibi(const CaseRunner& run) {
    Workload hand = run.counting("sq2,skv3,alibi");
    hand.set(hand.slope, 0, 0, 0, 0, 0.5);
    double near = std::exp(-0.5), far = std::exp(-1), sum = 1 + near + far;
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(hand, {1, (near + 2) / sum}, {std::log(1 + 2 * near), std::log(sum)}, false));
    for (const char* text : {"b2,hq8,hkv2,sq70,skv150,causal,alibi", "hq4,sq150,skv70,alibi", "hq4,sq70,skv150,alibi,topleft,window30:20"}) {
        Workload w = run.random(text);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(w));
    }
    return {};
}

Status softcap(const CaseRunner& run) {
    for (auto [cap, spread] : {std::pair{50.0f, 1.0}, {5.0f, 4.0}, {30.0f, 0.05}, {1.0f, 8.0}, {20.0f, 3.0}}) {
        WorkloadOptions options;
        options.softcap = cap, options.spread = spread;
        // Rows that one key dominates: enough of them for the bound.
        for (const char* text : {"b3,hq2,sq70,skv150,softcap", "b3,hq2,sq70,skv150,softcap,causal"}) {
            Workload w = run.random(text, options);
            TILEWRIGHT_RETURN_IF_ERROR(run.check(w));
        }
    }
    return {};
}

Status huge_scores(const CaseRunner& run) {
    double spread = run.dtype() == DType::fp16 ? 100 : 1e10;
    for (double magnitude : {1e4, 1e12, 1e30}) {  // of a score; a product of two 64-dimensional rows is about 8 spread^2
        WorkloadOptions options;
        options.spread = spread, options.scale = float(magnitude / (8 * spread * spread));
        for (float sign : {1.0f, -1.0f}) {
            options.scale = sign * std::abs(*options.scale);
            for (const char* text : {"sq40,skv150", "sq40,skv150,causal", "sq40,skv150,sink"}) {
                Workload w = run.random(text, options);
                TILEWRIGHT_RETURN_IF_ERROR(at("scores about " + std::to_string(magnitude), run.check(w)));
            }
        }
    }
    // Scores of 3e38 times the fraction in K: finite, but not after a multiplication by log2(e).
    WorkloadOptions options;
    options.scale = run.dtype() == DType::fp16 ? 1e37f : 1e30f;
    Workload edge = run.random("sq2,skv150", options);
    edge.fill(edge.query, 0);
    for (int64_t i = 0; i < 2; ++i) edge.set(edge.query, 0, 0, i, 0, (i ? -3e38 : 3e38) / double(*options.scale));
    for (int64_t j = 0; j < 150; ++j) edge.set(edge.key, 0, 0, j, 0, j % 50 == 7 ? 1 : double(j) / 256 - 0.5);
    return at("scores up to 3e38", run.check(edge));
}

Status moving_maximum(const CaseRunner& run) {
    for (const char* mask : {"", ",causal", ",sink"})
        for (int pattern = 0; pattern < 4; ++pattern) {
            WorkloadOptions options;
            options.scale = 1;
            Workload w = run.random(std::string("sq40,skv300") + mask, options);
            w.fill(w.query, 0);
            for (int64_t i = 0; i < 40; ++i) w.set(w.query, 0, 0, i, 0, i % 3 == 0 ? 1 : 0.25);
            for (int64_t j = 0; j < 300; ++j) {
                double steps[] = {double(j), -double(j), (j / 20 % 2 ? 1.0 : -1.0) * double(j), j == 150 ? 250.0 : double(j % 7)};
                w.set(w.key, 0, 0, j, 0, steps[pattern]);
            }
            TILEWRIGHT_RETURN_IF_ERROR(at("pattern " + std::to_string(pattern), run.check(w)));
        }
    return {};
}

Status everything(const CaseRunner& run) {
    for (const char* text : {"b2,hq4,hkv2,sq70,skv150,window40:3,softcap,bias,alibi,sink", "b2,hq4,hkv1,sq150,skv70,causal,softcap,bias,alibi,sink",
                             "b2,hq4,hkv1,sq150,skv70,topleft,softcap,bias,alibi,sink"}) {
        WorkloadOptions options;
        options.softcap = 3;
        options.layout = Layout::gapped;
        Workload w = run.random(text, options);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(w));
    }
    return {};
}

}  // namespace tilewright::cases
