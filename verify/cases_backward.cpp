// Cases of the backward: gradients against the reference, by hand, bit against bit.
#include <cmath>
#include <limits>

#include "verify/cases.h"
#include "verify/check_backward.h"

namespace tilewright::backward_cases {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const char* const masks[] = {"", ",causal", ",causal,topleft", ",window20:7", ",window90:-1", ",window-1:30,topleft"};

Status check(const CaseRunner& run, const std::string& parts, const WorkloadOptions& options = {}) {
    Workload w = run.random(parts, options);
    return run.check(w);
}

Status differs(const char* what, double is, double should) { return wrong(std::string(what) + " is " + std::to_string(is) + ", by hand it is " + std::to_string(should)); }
bool near(const CaseRunner& run, double x, double y) { return std::abs(x - y) <= (run.dtype() == DType::fp32 ? 1e-5 : 0.02) * std::max(1.0, std::abs(y)); }

}  // namespace

Status rows_that_see_nothing(const CaseRunner& run) {
    WorkloadOptions options;
    options.scale = 1, options.lse = false;
    Workload hand = run.random("sq5,skv2,causal", options);
    hand.fill(hand.query, 0);
    forward_results(hand);
    TILEWRIGHT_RETURN_IF_ERROR(run.check(hand));
    for (int64_t d = 0; d < hand.problem.head_dim; ++d) {
        double third = hand.get(hand.out_gradient, 0, 0, 3, d), last = hand.get(hand.out_gradient, 0, 0, 4, d);
        for (int64_t i = 0; i < 3; ++i)
            if (double x = hand.get(hand.query_gradient, 0, 0, i, d); x != 0) return differs("dQuery of an empty row", x, 0);
        for (int64_t j = 0; j < 2; ++j) {
            if (double x = hand.get(hand.key_gradient, 0, 0, j, d); x != 0) return differs("dKey", x, 0);
            double should = last / 2 + (j == 0 ? third : 0), x = hand.get(hand.value_gradient, 0, 0, j, d);
            if (!near(run, x, should)) return differs("dValue", x, should);
        }
    }
    for (const char* sink : {"", ",sink"}) {
        Workload w = run.random(std::string("hq2,hkv1,sq100,skv40,causal") + sink);
        for (int64_t i = 0; i < 60; ++i) w.set(w.out_gradient, 0, 1, i, 3, NAN), w.set(w.query, 0, 1, i, 5, infinity);
        TILEWRIGHT_RETURN_IF_ERROR(at("garbage in rows that see nothing", run.check(w)));
    }
    return check(run, "b2,hq4,hkv2,sq150,skv37,window3:2,topleft");
}

Status window(const CaseRunner& run) {
    for (const char* mask : masks)
        for (const char* sizes : {"sq1,skv130", "sq130,skv1", "sq65,skv150", "sq150,skv63", "sq100,skv100"})
            TILEWRIGHT_RETURN_IF_ERROR(check(run, std::string("hq2,hkv1,") + sizes + mask));
    return {};
}

Status grouped_heads(const CaseRunner& run) {
    for (const char* text : {"hq4,hkv2,sq70,skv90,causal", "hq4,hkv1,sq5,skv90", "b2,hq6,hkv2,sq33,skv33,alibi,sink"}) TILEWRIGHT_RETURN_IF_ERROR(check(run, text));
    return {};
}

Status empty_sequences(const CaseRunner& run) {
    for (const char* sizes : {"sq0,skv5", "sq5,skv0", "b0,sq5,skv5", "sq0,skv0", "sq5,skv0,sink", "b2,sq70,skv0,causal"}) TILEWRIGHT_RETURN_IF_ERROR(check(run, std::string("hq2,hkv1,") + sizes));
    return {};
}

Status strides(const CaseRunner& run) {
    const auto repeats = [&](Layout layout) { return layout != Layout::unaligned && run.config().dq != 1; };
    for (const char* text : {"b2,hq4,hkv2,sq70,causal", "b3,hq2,sq33"}) TILEWRIGHT_RETURN_IF_ERROR(check_layouts(run, text, repeats));
    return {};
}

Status broadcast_strides(const CaseRunner& run) {
    Workload one_row = run.random("b2,hq2,hkv2,sq40,skv40,causal");
    one_row.out_gradient.strides = {0, 0, 0, 1};
    TILEWRIGHT_RETURN_IF_ERROR(at("dOut with strides of 0", run.check(one_row)));
    Workload shared = run.random("b3,hq4,hkv4,sq40,skv70");
    for (Tensor* tensor : {&shared.key, &shared.value}) tensor->strides[0] = tensor->strides[1] = 0;
    forward_results(shared);
    TILEWRIGHT_RETURN_IF_ERROR(at("keys and values with batch and head strides of 0", run.check(shared)));
    Workload reversed = run.random("hq2,sq40,skv70,causal");
    for (Tensor* tensor : {&reversed.query, &reversed.key, &reversed.out_gradient, &reversed.query_gradient, &reversed.value_gradient}) {
        tensor->offset += (tensor->sizes[2] - 1) * tensor->strides[2] * int64_t(size_of(tensor->dtype));
        tensor->strides[2] = -tensor->strides[2];
    }
    forward_results(reversed);
    Status status = run.check(reversed);
    return status.code() == StatusCode::unsupported ? Status() : at("rows in reverse", status);
}

Status sink(const CaseRunner& run) {
    WorkloadOptions options;
    options.scale = 1, options.lse = false;
    Workload hand = run.random("sq1,skv3,sink", options);  // P of the sink is e / (3 + e), of each key 1 / (3 + e)
    hand.fill(hand.query, 0), hand.fill(hand.out_gradient, 1), hand.set(hand.sink, 0, 0, 0, 0, 1);
    for (int64_t j = 0; j < 3; ++j)
        for (int64_t d = 0; d < hand.problem.head_dim_v; ++d) hand.set(hand.value, 0, 0, j, d, 0.25 * double(j + 1));
    forward_results(hand);
    TILEWRIGHT_RETURN_IF_ERROR(run.check(hand));
    double e = std::exp(1), delta = double(hand.problem.head_dim_v) * 1.5 / (3 + e), should = -e / (3 + e) * delta, x = hand.get(hand.sink_gradient, 0, 0, 0, 0);
    if (!near(run, x, should)) return differs("dSink", x, should);
    for (const char* mask : masks) TILEWRIGHT_RETURN_IF_ERROR(check(run, std::string("b2,hq4,hkv2,sq70,skv60,sink") + mask));
    return {};
}

Status repeatability(const CaseRunner& run) {
    for (const char* text : {"b2,hq4,hkv2,sq200,causal", "b1,hq2,sq100,skv300,softcap,alibi,sink"}) {
        Workload w = run.random(text);
        TILEWRIGHT_RETURN_IF_ERROR(run.run(w, run.config().dq == 1 ? 1 : 20));
        TILEWRIGHT_RETURN_IF_ERROR(run.matches_reference(w));
    }
    return {};
}

Status tile_edges(const CaseRunner& run) {
    const Config& config = run.config();
    int64_t queries[] = {1, config.block_q - 1, config.block_q + 1, 2 * config.block_q + 3};
    int64_t keys[] = {1, config.block_kv - 1, config.block_kv, config.block_kv + 1};
    for (const char* mask : {"", ",causal", ",window40:3"})
        for (int64_t seq_q : queries)
            for (int64_t seq_kv : keys)
                if (seq_q > 0 && seq_kv > 0)  // enough sequences for the bound (random_problem.cpp)
                    TILEWRIGHT_RETURN_IF_ERROR(check(run, "b4,hq2,hkv1,sq" + std::to_string(seq_q) + ",skv" + std::to_string(seq_kv) + mask));
    return {};
}

Status head_dims(const CaseRunner& run) {
    Status last;
    bool any = false;
    for (const char* dims : {"d8", "d5", "d32", "d40,dv72", "d80", "d96", "d104,dv1", "d128", "d128,dv96", "d192,dv128", "d256"}) {
        Status status = check(run, std::string("hq4,hkv2,sq70,skv90,causal,") + dims);
        // A config that does not fit one of them is no reason not to try the others.
        if (!status.ok() && status.code() != StatusCode::unsupported) return status;
        if (status.ok()) any = true;
        else last = status;
    }
    return any ? Status() : last;
}

Status scales(const CaseRunner& run) {
    for (float scale : {0.0f, -0.3f, 1.0f}) {
        WorkloadOptions options;
        options.scale = scale;
        TILEWRIGHT_RETURN_IF_ERROR(at("scale " + std::to_string(scale), check(run, "hq2,hkv1,sq33,skv65,d16,causal", options)));
    }
    return {};
}

Status softcap(const CaseRunner& run) {
    for (auto [cap, spread] : {std::pair{50.0f, 1.0}, {2.0f, 1.0}, {1.0f, 3.0}}) {
        WorkloadOptions options;
        options.softcap = cap, options.spread = spread;
        for (const char* text : {"hq2,sq70,skv110,softcap", "hq2,hkv1,sq70,skv60,softcap,causal"}) TILEWRIGHT_RETURN_IF_ERROR(check(run, text, options));
    }
    return {};
}

Status alibi(const CaseRunner& run) {
    for (const char* text : {"b2,hq8,hkv2,sq70,skv100,causal,alibi", "hq4,sq100,skv70,alibi", "hq4,sq70,skv100,alibi,topleft,window30:20"}) TILEWRIGHT_RETURN_IF_ERROR(check(run, text));
    return {};
}

Status optional_lse(const CaseRunner& run) {
    for (bool given : {true, false}) {
        WorkloadOptions options;
        options.lse = given;
        for (const char* text : {"b2,hq2,sq70,skv90,causal", "hq2,sq70,skv40,causal,sink"}) TILEWRIGHT_RETURN_IF_ERROR(check(run, text, options));
    }
    return {};
}

Status everything(const CaseRunner& run) {
    for (const char* text : {"b2,hq4,hkv2,sq70,skv100,window40:3,softcap,alibi,sink", "b2,hq4,hkv1,sq100,skv70,causal,softcap,alibi,sink", "b2,hq4,hkv1,sq100,skv70,topleft,window60:-1,softcap,alibi,sink"}) {
        WorkloadOptions options;
        options.softcap = 3, options.layout = Layout::gapped;
        TILEWRIGHT_RETURN_IF_ERROR(check(run, text, options));
    }
    return {};
}

Status bias(const CaseRunner& run) {
    for (const char* text : {"b2,hq4,hkv2,sq40,skv70,bias", "hq2,sq70,skv50,bias,causal,softcap"}) {
        WorkloadOptions options;
        options.softcap = 2;
        Workload w = run.random(text, options);
        for (int64_t i = 0; i < w.problem.seq_q; ++i)
            for (int64_t j = 0; j < w.problem.seq_kv; ++j)
                if ((i * 7 + j * 5) % 3 == 0 || i == 11) w.set(w.bias, 0, 1, i, j, -infinity);
        forward_results(w);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(w));
        Workload unwanted = w, extreme = w;
        unwanted.bias_gradient = {};
        TILEWRIGHT_RETURN_IF_ERROR(run.run(unwanted));
        TILEWRIGHT_RETURN_IF_ERROR(at("no gradient of the bias wanted", run.matches_reference(unwanted)));
        double largest = run.dtype() == DType::fp16 ? 65504 : run.dtype() == DType::bf16 ? 0x1.fep127 : 0x1.fffffep127;
        for (int64_t j = 0; j < w.problem.seq_kv; ++j) extreme.set(extreme.bias, 0, 0, 12, j, -largest), extreme.set(extreme.bias, 0, 0, 13, j, largest);
        forward_results(extreme);
        TILEWRIGHT_RETURN_IF_ERROR(at("the lowest and the highest bias", run.check(extreme)));
    }
    return {};
}

Status broadcast_bias(const CaseRunner& run) {
    const char* const texts[] = {"b2,hq4,hkv2,sq30,skv70,bias", "b2,hq4,hkv2,sq90,skv70,bias,causal", "b3,hq2,hkv1,sq70,skv90,bias,softcap,window30:9", "b2,hq2,hkv2,sq70,skv40,bias,sink,alibi,topleft"};
    for (unsigned pattern = 0; pattern < 16; ++pattern) {
        WorkloadOptions options;
        options.softcap = 2;
        for (unsigned i = 0; i < 4; ++i) options.broadcast_bias[i] = pattern >> i & 1;
        for (const char* text : {texts[0], texts[1 + pattern % 3]})
            TILEWRIGHT_RETURN_IF_ERROR(at("bias strides 0 in dimensions " + std::to_string(pattern) + " (bits: batch, head, row, column)", check(run, text, options)));
    }
    return {};
}

Status bias_hidden_garbage(const CaseRunner& run) {
    for (const char* mask : {"", ",causal"}) {
        Workload clean = run.random(std::string("hq2,hkv1,sq80,skv90,bias") + mask);
        for (int64_t h = 0; h < 2; ++h)
            for (int64_t i = 0; i < 80; ++i)
                for (int64_t j = 0; j < 90; ++j)
                    if (j == 3 || j == 20 || i == 7 || i == 70) clean.set(clean.bias, 0, h, i, j, -infinity);
        forward_results(clean);
        Workload dirty = clean;
        dirty.set(dirty.key, 0, 0, 3, 2, NAN), dirty.set(dirty.value, 0, 0, 20, 3, -infinity), dirty.set(dirty.value, 0, 0, 3, 1, NAN);
        dirty.set(dirty.query, 0, 1, 7, 5, infinity), dirty.set(dirty.out_gradient, 0, 0, 70, 4, NAN), dirty.set(dirty.out_gradient, 0, 0, 7, 4, infinity);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(clean));
        TILEWRIGHT_RETURN_IF_ERROR(run.check(dirty));
        TILEWRIGHT_RETURN_IF_ERROR(at("behind a bias of -infinity", same_bits(clean, dirty)));
        Workload seen = clean;  // by some
        for (int64_t h = 0; h < 2; ++h)
            for (int64_t i = 40; i < 60; ++i) seen.set(seen.bias, 0, h, i, 3, 0), seen.set(seen.bias, 0, h, 7, i - 40, 0.5);
        seen.set(seen.value, 0, 0, 3, 1, NAN), seen.set(seen.out_gradient, 0, 1, 7, 4, NAN);
        forward_results(seen);
        TILEWRIGHT_RETURN_IF_ERROR(at("behind a bias of -infinity for some", run.check(seen)));
    }
    return {};
}

Status visible_nan(const CaseRunner& run) {
    for (int which = 0; which < 4; ++which)
        for (double special : {double(NAN), infinity}) {
            if (which < 2 && special == infinity) continue;  // then some scores are -infinity, for which the reference has no gradient
            Workload w = run.random("hq2,hkv1,sq150,skv150,window20:10");
            w.set(which == 0 ? w.query : which == 1 ? w.key : which == 2 ? w.value : w.out_gradient, 0, 0, 70, 3, special);
            forward_results(w);
            const char* where[] = {"in a query", "in a key", "in a value", "in dOut"};
            TILEWRIGHT_RETURN_IF_ERROR(at(std::to_string(special) + " " + where[which], run.check(w)));
        }
    return {};
}

Status hidden_garbage(const CaseRunner& run) {
    Workload clean = run.random("hq2,hkv1,sq100,skv150,window20:10,topleft"), dirty = clean;
    for (int64_t j = 110; j < 150; ++j) dirty.set(dirty.key, 0, 0, j, 2, NAN), dirty.set(dirty.value, 0, 0, j, 3, -infinity);
    TILEWRIGHT_RETURN_IF_ERROR(run.check(clean));
    TILEWRIGHT_RETURN_IF_ERROR(run.check(dirty));
    if (run.config().dq != 1) TILEWRIGHT_RETURN_IF_ERROR(at("hidden keys and values", same_bits(clean, dirty)));
    for (const char* text : {"hq2,sq40,skv50,d40", "hq2,sq40,skv50,d72,dv24"}) {  // gaps behind every row hold NaN
        WorkloadOptions options;
        options.layout = Layout::gapped;
        TILEWRIGHT_RETURN_IF_ERROR(check(run, text, options));
    }
    return {};
}

Status long_sequences(const CaseRunner& run) {
    for (const char* text : {"sq3,skv3000", "sq3000,skv5", "hq2,hkv1,sq600,causal"}) TILEWRIGHT_RETURN_IF_ERROR(check(run, std::string(text) + ",d32"));
    return {};
}

Status packed_sequences(const CaseRunner& run) {
    WorkloadOptions options;
    options.query_lengths = {70, 0, 5, 130, 1}, options.lengths = {90, 40, 0, 133, 64};
    options.unused_rows = {3, 5, 7, 2};
    for (const char* parts : {"hq4,hkv2,causal", "hq2,hkv1,window20:7,sink", "hq2,hkv1,causal,topleft,softcap", "hq2,hkv2,d40,dv24,alibi"}) {
        options.wide_starts = !options.wide_starts;
        TILEWRIGHT_RETURN_IF_ERROR(check(run, std::string("b5,sq130,skv133,packed,") + parts, options));
    }
    return check(run, "b6,hq2,hkv1,sq=loguniform(1,200),skv=loguniform(4,200),causal,packed,seed3");
}

}  // namespace tilewright::backward_cases
