// Cases about where the numbers lie: strides, broadcasts, heads, head dimensions, far offsets.
#include <cmath>
#include <limits>

#include "verify/cases.h"
#include "verify/device_workload.h"

namespace tilewright::cases {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

Status strides(const CaseRunner& run) {
    for (const char* text : {"b2,hq4,hkv2,sq70,causal", "b3,hq2,sq33"})
        TILEWRIGHT_RETURN_IF_ERROR(check_layouts(run, text, [](Layout) { return true; }));
    return {};
}

Status broadcast_strides(const CaseRunner& run) {
    Workload shared = run.random("b3,hq4,hkv4,sq40,skv70");
    for (Tensor* tensor : {&shared.key, &shared.value}) tensor->strides[0] = tensor->strides[1] = 0;  // one K and V for all
    TILEWRIGHT_RETURN_IF_ERROR(at("keys and values with batch and head strides of 0", run.check(shared)));
    Workload repeated = run.random("hq2,sq40,skv70,causal");
    repeated.query.strides[2] = repeated.key.strides[2] = 0;  // one query row, one key row
    TILEWRIGHT_RETURN_IF_ERROR(at("query and key with a row stride of 0", run.check(repeated)));
    Workload reversed = run.random("hq2,sq40,skv70,causal");
    for (Tensor* tensor : {&reversed.query, &reversed.key, &reversed.value, &reversed.out}) {
        tensor->offset += (tensor->sizes[2] - 1) * tensor->strides[2] * int64_t(size_of(tensor->dtype));
        tensor->strides[2] = -tensor->strides[2];
    }
    return at("rows in reverse", run.check(reversed));
}

Status broadcast_bias(const CaseRunner& run) {
    for (unsigned pattern = 0; pattern < 16; ++pattern) {
        WorkloadOptions options;
        for (unsigned i = 0; i < 4; ++i) options.broadcast_bias[i] = pattern >> i & 1;
        Workload w = run.random("b2,hq4,hkv2,sq30,skv70,bias", options);
        TILEWRIGHT_RETURN_IF_ERROR(at("bias strides 0 in dimensions " + std::to_string(pattern) + " (bits: batch, head, row, column)", run.check(w)));
    }
    return {};
}

Status grouped_heads(const CaseRunner& run) {
    for (const char* text : {"hq4,hkv2,sq70,skv90,causal", "hq4,hkv1,sq5,skv90", "hq4,hkv2,sq33,skv33,bias,alibi,sink"}) {
        Workload all = run.random(text);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(all));
        for (int64_t head = 0; head < 4; ++head) {
            Workload one = all, part = all;
            keep_head(one, head), keep_head(part, head);
            TILEWRIGHT_RETURN_IF_ERROR(run.run(one));
            TILEWRIGHT_RETURN_IF_ERROR(at("head " + std::to_string(head) + " alone and among four", same_bits(one, part)));
        }
    }
    return {};
}

Status odd_head_dims(const CaseRunner& run) {
    for (auto [odd, padded] : {std::pair<int64_t, int64_t>{5, 64}, {40, 64}, {72, 128}, {104, 128}}) {
        std::string shape = "hq2,sq40,skv70,causal,d";
        Workload small = run.random(shape + std::to_string(odd));
        WorkloadOptions options;
        options.scale = small.scale;
        Workload large = run.random(shape + std::to_string(padded), options);
        for (const Tensor* tensor : {&large.query, &large.key, &large.value}) large.fill(*tensor, 0);
        auto copy = [&](const Tensor& to, const Tensor& from) {
            for (int64_t h = 0; h < 2; ++h)
                for (int64_t i = 0; i < from.sizes[2]; ++i)
                    for (int64_t d = 0; d < odd; ++d) large.set(to, 0, h, i, d, small.get(from, 0, h, i, d));
        };
        copy(large.query, small.query), copy(large.key, small.key), copy(large.value, small.value);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(small));
        TILEWRIGHT_RETURN_IF_ERROR(run.check(large));
        // Both are held to the reference of the padded problem, the narrow one beside the zero columns.
        Workload widened = large;
        for (int64_t h = 0; h < 2; ++h)
            for (int64_t i = 0; i < 40; ++i) {
                widened.set(widened.lse, 0, h, i, 0, small.get(small.lse, 0, h, i, 0));
                for (int64_t d = 0; d < odd; ++d) widened.set(widened.out, 0, h, i, d, small.get(small.out, 0, h, i, d));
            }
        TILEWRIGHT_RETURN_IF_ERROR(at("head dimension " + std::to_string(odd) + " as " + std::to_string(padded), run.matches_reference(widened)));
    }
    return {};
}

Status head_dims(const CaseRunner& run) {
    for (const char* dims : {"d8", "d16", "d32", "d80", "d96", "d128", "d192,dv128", "d256", "d64,dv128", "d128,dv64", "d1"}) {
        Workload w = run.random(std::string("hq2,hkv1,sq70,skv90,causal,") + dims);
        // A config that does not fit one of them is no reason not to try the others.
        if (Status status = run.check(w); !status.ok() && status.code() != StatusCode::unsupported) return status;
    }
    return {};
}

Status merge(const CaseRunner& run) {
    auto merged = [&](const Workload& whole, int64_t first) -> Status {
        Workload left = whole, right = whole, all = whole;
        keep_keys(left, 0, first);
        keep_keys(right, first, whole.problem.seq_kv - first);
        for (Workload* w : {&left, &right, &all}) TILEWRIGHT_RETURN_IF_ERROR(run.check(*w));
        double a = left.get(left.lse, 0, 0, 0, 0), b = right.get(right.lse, 0, 0, 0, 0), lse = all.get(all.lse, 0, 0, 0, 0);
        double most = std::max(a, b), together = most + std::log(std::exp(a - most) + std::exp(b - most));
        if (!(std::abs(together - lse) <= 2e-6 * std::max(1.0, std::abs(lse)))) return wrong("the lse of 2 parts merge to " + std::to_string(together) + ", of all keys it is " + std::to_string(lse));
        Workload joined = all;
        for (int64_t d = 0; d < all.problem.head_dim_v; ++d)
            joined.set(joined.out, 0, 0, 0, d, std::exp(a - together) * left.get(left.out, 0, 0, 0, d) + std::exp(b - together) * right.get(right.out, 0, 0, 0, d));
        return at("two parts merged", run.matches_reference(joined));
    };
    Workload hand = run.counting("sq1,skv8");
    Workload first = hand, last = hand;
    keep_keys(first, 0, 6), keep_keys(last, 6, 2);
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(first, {2.5}, {std::log(6)}));
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(last, {6.5}, {std::log(2)}));
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(hand, {0.75 * 2.5 + 0.25 * 6.5}, {std::log(8)}));
    TILEWRIGHT_RETURN_IF_ERROR(merged(hand, 6));
    Workload none = hand;  // the empty state is the identity: its weight exp(-infinity) is 0
    keep_keys(none, 0, 0);
    return run.by_hand(none, {0}, {-infinity});
}

Status repeatability(const CaseRunner& run) {
    for (const char* text : {"b2,hq4,hkv2,sq200,causal", "b1,hq2,sq100,skv300,softcap,bias,alibi,sink"}) {
        Workload first = run.random(text), again = first;
        TILEWRIGHT_RETURN_IF_ERROR(run.check(first, 64));
        for (int i = 2; i <= 20; ++i) {
            TILEWRIGHT_RETURN_IF_ERROR(run.run(again));
            TILEWRIGHT_RETURN_IF_ERROR(at("run " + std::to_string(i), same_bits(first, again)));
        }
    }
    return {};
}

Status optional_lse(const CaseRunner& run) {
    WorkloadOptions options;
    options.lse = false;
    Workload with = run.random("b2,hq2,sq70,skv90,causal"), without = run.random("b2,hq2,sq70,skv90,causal", options);
    TILEWRIGHT_RETURN_IF_ERROR(run.check(with));
    TILEWRIGHT_RETURN_IF_ERROR(run.check(without));
    return same_bits(with, without);
}

Status long_sequences(const CaseRunner& run) {
    for (const char* text : {"hq2,sq2000,causal", "sq1,skv20000", "b4,hq8,hkv1,sq4,skv3000,causal"}) {
        Workload w = run.random(text);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(w, 64));
    }
    return {};
}

}  // namespace tilewright::cases
