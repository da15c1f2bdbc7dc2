// Cases of packed sequences: lengths, starts, neighbours, and that masks and variants count within the sequence.
#include <cmath>
#include <limits>

#include "verify/cases.h"

namespace tilewright::cases {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Sequences {
    std::vector<int32_t> queries, keys;
};
const Sequences mixed{{37, 0, 64, 1, 130, 16}, {90, 12, 64, 1, 0, 200}};

// Of as many sequences as there are lengths, the longest of which fill the problem. Rows that are no sequence's lie around them.
Workload packed(const CaseRunner& run, const std::string& parts, const Sequences& of = mixed, WorkloadOptions options = {}) {
    int32_t longest_q = 0, longest_kv = 0;
    for (int32_t length : of.queries) longest_q = std::max(longest_q, length);
    for (int32_t length : of.keys) longest_kv = std::max(longest_kv, length);
    options.query_lengths = of.queries, options.lengths = of.keys;
    if (options.unused_rows == std::array<int64_t, 4>{}) options.unused_rows = {3, 5, 2, 7};
    return run.random("b" + std::to_string(of.queries.size()) + ",sq" + std::to_string(longest_q) + ",skv" + std::to_string(longest_kv) + "," + parts + ",packed", options);
}

Status check(const CaseRunner& run, const std::string& parts, const Sequences& of = mixed, const WorkloadOptions& options = {}) {
    Workload w = packed(run, parts, of, options);
    return run.check(w);
}

}  // namespace

Status packed_lengths(const CaseRunner& run) {
    for (const Sequences& of : {mixed, Sequences{{1, 2, 3, 15, 16, 17}, {17, 16, 15, 3, 2, 1}}, {{63, 64, 65}, {129, 128, 127}}, {{0, 0, 7}, {0, 9, 0}}, {{300}, {300}}, {{0}, {5}}})
        TILEWRIGHT_RETURN_IF_ERROR(check(run, "hq4,hkv2", of));
    for (const char* text : {"b0,sq64,packed", "b3,sq0,skv64,packed"}) {
        Workload w = run.random(text);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(w));
    }
    return {};
}

Status packed_starts(const CaseRunner& run) {
    WorkloadOptions options;
    Workload narrow = packed(run, "hq4,hkv2,causal", mixed, options);
    options.wide_starts = true;
    Workload wide = packed(run, "hq4,hkv2,causal", mixed, options);
    options.unused_rows = {0, 200, 130, 0};
    Workload elsewhere = packed(run, "hq4,hkv2,causal", mixed, options);
    for (Workload* w : {&narrow, &wide, &elsewhere}) TILEWRIGHT_RETURN_IF_ERROR(run.check(*w));
    TILEWRIGHT_RETURN_IF_ERROR(at("starts of 32 and of 64 bits", same_bits(narrow, wide)));
    return at("rows before the first sequence", same_bits(narrow, elsewhere));
}

Status packed_neighbours(const CaseRunner& run) {
    for (const char* parts : {"hq4,hkv2", "hq2,hkv1,causal", "hq2,hkv2,window20:3"}) {
        Workload clean = packed(run, parts), dirty = clean;
        constexpr int64_t poisoned = 2;
        for (int64_t j = 0; j < dirty.lengths[poisoned]; ++j) {
            auto [batch, row] = dirty.slot(poisoned, j);
            for (int64_t h = 0; h < dirty.problem.heads_kv; ++h)
                for (int64_t c = 0; c < dirty.problem.head_dim; ++c) dirty.set(dirty.key, batch, h, row, c, NAN), dirty.set(dirty.value, batch, h, row, c, infinity);
        }
        const int64_t first = dirty.row_of({poisoned, 0, 0}).query, end = first + dirty.query_lengths[poisoned];
        for (int64_t h = 0; h < dirty.problem.heads_q; ++h)
            for (int64_t i = first; i < end; ++i) dirty.set(dirty.query, 0, h, i, 0, -infinity);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(clean));
        TILEWRIGHT_RETURN_IF_ERROR(run.run(dirty));
        TILEWRIGHT_RETURN_IF_ERROR(at(parts, same_bits(clean, dirty, [&](const RowIndex& r) { return r.query < first || r.query >= end; })));
    }
    return {};
}

Status packed_masks(const CaseRunner& run) {
    for (const char* parts : {"hq4,hkv2,causal", "hq2,hkv1,causal,topleft", "hq2,hkv2,window30:0", "hq4,hkv1,window10:5", "hq1,window-1:20,topleft", "hq1,window7:-1"})
        TILEWRIGHT_RETURN_IF_ERROR(check(run, parts));
    return check(run, "hq4,hkv2,causal", {{200, 33, 1}, {100, 300, 1}});  // rows that see nothing
}

Status packed_variants(const CaseRunner& run) {
    WorkloadOptions options;
    options.softcap = 3;
    for (const char* parts : {"hq2,hkv1,softcap", "hq4,hkv2,alibi", "hq4,hkv1,causal,alibi", "hq4,hkv2,sink", "hq4,hkv2,window40:9,softcap,alibi,sink"})
        TILEWRIGHT_RETURN_IF_ERROR(check(run, parts, mixed, options));
    options.scale = -0.25f;
    return check(run, "hq2,hkv1,causal", mixed, options);
}

Status packed_grouped_heads(const CaseRunner& run) {
    for (const char* parts : {"hq1,hkv1", "hq5,hkv5", "hq6,hkv2,causal", "hq16,hkv1", "hq24,hkv3,causal"}) TILEWRIGHT_RETURN_IF_ERROR(check(run, parts, {{50, 3, 0, 20}, {60, 40, 8, 5}}));
    return {};
}

Status packed_head_dims(const CaseRunner& run) {
    Status last;
    bool any = false;
    for (const char* dims : {"d8", "d5", "d40,dv72", "d80", "d128", "d192,dv128", "d256"}) {
        Status status = check(run, std::string("hq2,hkv1,causal,") + dims, {{70, 0, 20}, {90, 3, 33}});
        if (!status.ok() && status.code() != StatusCode::unsupported) return status;
        if (status.ok()) any = true;
        else last = status;
    }
    return any ? Status() : last;
}

Status packed_layouts(const CaseRunner& run) {
    for (Layout layout : all_layouts) {
        WorkloadOptions options;
        options.layout = layout;
        TILEWRIGHT_RETURN_IF_ERROR(at(name(layout), check(run, "hq4,hkv2,causal", mixed, options)));
    }
    return {};
}

Status packed_repeatability(const CaseRunner& run) {
    Workload w = packed(run, "hq8,hkv2,causal", {{300, 0, 5, 133, 64, 1}, {300, 7, 5, 200, 64, 1}});
    TILEWRIGHT_RETURN_IF_ERROR(run.run(w, 20));
    return run.matches_reference(w);
}

Status packed_long_sequences(const CaseRunner& run) {
    TILEWRIGHT_RETURN_IF_ERROR(check(run, "hq1", {{1, 9, 3}, {30, 9000, 20}}));
    Workload drawn = run.random("b12,hq2,hkv1,sq=loguniform(1,600),skv=loguniform(4,900),causal,packed,seed3");
    return run.check(drawn, 300);
}

}  // namespace tilewright::cases
