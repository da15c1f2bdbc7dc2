// Cases of decoding: sequences of different lengths, dense and in pages, whole and split.
#include <cmath>
#include <limits>

#include "verify/cases.h"

namespace tilewright::decode_cases {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const std::vector<int32_t> mixed{300, 0, 5, 133, 64, 1, 0, 129};
constexpr int many_splits[] = {1, 2, 3, 7, 100};  // with 3, a unit ends one sequence and begins another

WorkloadOptions with_lengths(const std::vector<int32_t>& lengths) {
    WorkloadOptions options;
    options.lengths = lengths;
    return options;
}

// "b8,hq4,...": of as many sequences as there are lengths, of which the longest fills the problem.
std::string sized(const std::string& parts, const std::vector<int32_t>& lengths, int64_t page = 0) {
    int32_t longest = 0;
    for (int32_t length : lengths) longest = std::max(longest, length);
    return "b" + std::to_string(lengths.size()) + ",skv" + std::to_string(longest) + "," + parts + (page > 0 ? ",page" + std::to_string(page) : "");
}

Status check(const CaseRunner& run, const std::string& parts, const std::vector<int32_t>& lengths, int64_t page, int splits, WorkloadOptions options = {}) {
    options.lengths = lengths;
    Workload w = run.random(sized(parts, lengths, page), options);
    w.splits = splits;
    return at(std::to_string(splits) + " splits", run.check(w));
}

// Dense and in pages, whole and split.
Status check_all(const CaseRunner& run, const std::string& parts, const std::vector<int32_t>& lengths = mixed, const WorkloadOptions& options = {}) {
    for (int64_t page : {0, 16, 64})
        for (int splits : {0, 1, 5}) TILEWRIGHT_RETURN_IF_ERROR(check(run, parts, lengths, page, splits, options));
    return {};
}

}  // namespace

Status lengths(const CaseRunner& run) {
    for (int splits : many_splits) TILEWRIGHT_RETURN_IF_ERROR(check(run, "hq8,hkv2,sq1", mixed, 0, splits));
    TILEWRIGHT_RETURN_IF_ERROR(check_all(run, "hq4,hkv2,sq1", {1, 2, 3, 15, 16, 17, 63, 64, 65}));
    return check_all(run, "hq2,hkv1,sq1", {0, 0, 7});
}

Status pages(const CaseRunner& run) {
    for (int splits : {1, 4}) {
        Workload dense = run.random(sized("hq4,hkv2,sq1", mixed), with_lengths(mixed));
        dense.splits = splits;
        TILEWRIGHT_RETURN_IF_ERROR(run.check(dense));
        for (int64_t page : {16, 32, 64, 128, 256, 1024})
            for (Layout layout : {Layout::heads_first, Layout::rows_first, Layout::gapped}) {
                WorkloadOptions options = with_lengths(mixed);
                options.layout = layout;
                Workload paged = run.random(sized("hq4,hkv2,sq1", mixed, page), options);
                paged.splits = splits;
                TILEWRIGHT_RETURN_IF_ERROR(at("pages of " + std::to_string(page), run.check(paged)));
            }
    }
    return {};
}

Status shared_pages(const CaseRunner& run) {
    const std::vector<int32_t> same{200, 150, 200};
    for (int splits : {1, 6}) {
        Workload w = run.random(sized("hq4,hkv2,sq1", same, 16), with_lengths(same));
        for (int64_t s = 1; s < 3; ++s)  // the first nine pages are the first sequence's
            for (int64_t i = 0; i < 9; ++i) w.block_table[size_t(s * w.table_stride + i)] = w.block_table[size_t(i)];
        w.splits = splits;
        TILEWRIGHT_RETURN_IF_ERROR(run.check(w));
    }
    return {};
}

Status unused_slots(const CaseRunner& run) {
    for (int64_t page : {0, 16, 64})
        for (int splits : {1, 5})
            for (const char* parts : {"hq4,hkv2,sq1", "hq4,hkv2,sq3,causal"}) {
                Workload clean = run.random(sized(parts, mixed, page), with_lengths(mixed)), dirty = clean;  // there is NaN already
                clean.splits = dirty.splits = splits;
                for (const Tensor* tensor : {&dirty.key, &dirty.value}) {
                    std::vector<std::vector<bool>> used(size_t(tensor->sizes[0]), std::vector<bool>(size_t(tensor->sizes[2])));
                    for (int64_t s = 0; s < dirty.problem.batch; ++s)
                        for (int64_t j = 0; j < dirty.lengths[size_t(s)]; ++j) {
                            auto [batch, row] = dirty.slot(s, j);
                            used[size_t(batch)][size_t(row)] = true;
                        }
                    for (int64_t b = 0; b < tensor->sizes[0]; ++b)
                        for (int64_t r = 0; r < tensor->sizes[2]; ++r)
                            for (int64_t c = 0; c < tensor->sizes[3] && !used[size_t(b)][size_t(r)]; ++c) dirty.set(*tensor, b, 0, r, c, r % 2 ? infinity : -infinity);
                }
                TILEWRIGHT_RETURN_IF_ERROR(run.check(clean));
                TILEWRIGHT_RETURN_IF_ERROR(run.run(dirty));
                TILEWRIGHT_RETURN_IF_ERROR(at("page " + std::to_string(page) + ", " + std::to_string(splits) + " splits", same_bits(clean, dirty)));
            }
    return {};
}

Status splits(const CaseRunner& run) {
    for (const char* parts : {"hq4,hkv2,sq1", "hq8,hkv1,sq2,causal", "hq2,hkv2,sq1,sink,alibi"})
        for (int count : {0, 1, 2, 3, 4, 8, 17, 1000}) TILEWRIGHT_RETURN_IF_ERROR(check(run, parts, {700, 3, 260}, 0, count));
    return {};
}

Status repeatability(const CaseRunner& run) {
    for (int64_t page : {0, 16})
        for (int count : {1, 40}) {
            const std::vector<int32_t> of{3000, 0, 5, 1333};
            Workload w = run.random(sized("hq8,hkv2,sq1", of, page), with_lengths(of));
            w.splits = count;
            TILEWRIGHT_RETURN_IF_ERROR(run.run(w, 20));
            TILEWRIGHT_RETURN_IF_ERROR(run.matches_reference(w));
        }
    return {};
}

Status causal_tail(const CaseRunner& run) {
    for (int queries : {1, 2, 3, 5, 8, 16})
        for (int64_t page : {0, 16})
            for (int count : {1, 6})
                TILEWRIGHT_RETURN_IF_ERROR(check(run, "hq6,hkv2,causal,sq" + std::to_string(queries), {200, 3, 0, 16, 70}, page, count));
    Workload newest = run.random("b2,hq2,hkv1,sq2,skv300,causal", with_lengths({300, 128}));  // the first query does not see the last key
    for (int64_t c = 0; c < newest.problem.head_dim; ++c) newest.set(newest.key, 0, 0, 299, c, NAN), newest.set(newest.value, 1, 0, 127, c, infinity);
    newest.splits = 3;
    return at("NaN in the newest key", run.check(newest));
}

Status window(const CaseRunner& run) {
    for (const char* parts : {"hq4,hkv1,sq4,window100:2", "hq2,hkv2,sq1,window30:0", "hq2,hkv1,sq3,window-1:1,topleft", "hq2,hkv1,sq2,causal,topleft", "hq2,hkv1,sq16,window5:5"})
        TILEWRIGHT_RETURN_IF_ERROR(check_all(run, parts, {300, 0, 90, 101, 2}));
    return {};
}

Status sink(const CaseRunner& run) {
    for (const char* parts : {"hq4,hkv1,sq1,sink", "hq4,hkv2,sq3,causal,sink"}) TILEWRIGHT_RETURN_IF_ERROR(check_all(run, parts));
    return {};
}

Status variants(const CaseRunner& run) {
    WorkloadOptions options;
    options.softcap = 3;
    for (const char* parts : {"hq4,hkv2,sq1,softcap", "hq4,hkv2,sq1,alibi", "hq4,hkv1,sq1,softcap,alibi,sink", "hq4,hkv1,sq4,causal,softcap,alibi,sink"})
        TILEWRIGHT_RETURN_IF_ERROR(check_all(run, parts, mixed, options));
    return {};
}

Status bias(const CaseRunner& run) {
    for (int count : {1, 5}) {
        Workload w = run.random("b4,hq2,hkv1,sq2,skv300,bias,page16", with_lengths({300, 0, 65, 128}));
        for (int64_t s = 0; s < 4; ++s)
            for (int64_t j = 3; j < w.lengths[size_t(s)]; j += 7) {  // every seventh key is hidden
                auto [batch, row] = w.slot(s, j);
                w.set(w.value, batch, 0, row, 1, infinity), w.set(w.key, batch, 0, row, 2, NAN);
                for (int64_t h = 0; h < 2; ++h)
                    for (int64_t i = 0; i < 2; ++i) w.set(w.bias, s, h, i, j, -infinity);
            }
        w.splits = count;
        TILEWRIGHT_RETURN_IF_ERROR(run.check(w));
    }
    return {};
}

Status grouped_heads(const CaseRunner& run) {
    for (const char* parts : {"hq1,hkv1,sq1", "hq5,hkv5,sq1", "hq16,hkv1,sq1", "hq32,hkv2,sq1", "hq24,hkv1,sq3,causal", "hq8,hkv1,sq16,causal", "hq40,hkv1,sq1"})
        for (int count : {1, 5})  // with short sequences, whose outputs are large: a few of those are too few for the bound
            TILEWRIGHT_RETURN_IF_ERROR(check(run, parts, {200, 77, 1, 2, 3, 4, 6}, 16, count));
    return {};
}

Status head_dims(const CaseRunner& run) {
    Status last;
    bool any = false;
    for (const char* dims : {"d8", "d5", "d40,dv72", "d80", "d96", "d128", "d192,dv128", "d256", "d1"})
        for (int64_t page : {0, 16}) {
            Status status = check(run, std::string("hq4,hkv2,sq1,") + dims, {150, 0, 33}, page, 4);
            if (!status.ok() && status.code() != StatusCode::unsupported) return status;
            if (status.ok()) any = true;
            else last = status;
        }
    return any ? Status() : last;
}

Status strides(const CaseRunner& run) {
    for (Layout layout : all_layouts) {
        WorkloadOptions options;
        options.layout = layout;
        TILEWRIGHT_RETURN_IF_ERROR(at(name(layout), check_all(run, "hq4,hkv2,sq2,causal", {130, 0, 64}, options)));
    }
    return {};
}

Status scales(const CaseRunner& run) {
    for (float scale : {0.0f, -0.25f}) {
        WorkloadOptions options;
        options.scale = scale;
        TILEWRIGHT_RETURN_IF_ERROR(check_all(run, "hq2,hkv1,sq1", {300, 5}, options));
    }
    // One unit in the last place of a log-sum is 1/4 here: weights of parts must not depend on it.
    WorkloadOptions options = with_lengths({512});
    options.scale = 1;
    Workload huge = run.random("b1,hq1,hkv1,sq1,skv512,d8", options);
    huge.fill(huge.query, 0), huge.fill(huge.key, 0), huge.set(huge.query, 0, 0, 0, 0, 2048), huge.set(huge.query, 0, 0, 0, 1, 0.25);
    for (int64_t j = 0; j < 512; ++j) huge.set(huge.key, 0, 0, j, 0, 1024), huge.set(huge.key, 0, 0, j, 1, double(j / 64 % 2));
    huge.splits = 8;
    return at("scores of two millions", run.check(huge));
}

Status visible_nan(const CaseRunner& run) {
    for (int64_t page : {0, 16})
        for (int count : {1, 6}) {
            Workload clean = run.random(sized("hq4,hkv2,sq1", mixed, page), with_lengths(mixed)), key = clean, value = clean;
            for (Workload* w : {&clean, &key, &value}) w->splits = count;
            auto [batch, row] = clean.slot(3, 77);
            key.set(key.key, batch, 1, row, 3, NAN), value.set(value.value, batch, 1, row, 7, -infinity);
            TILEWRIGHT_RETURN_IF_ERROR(run.check(clean));
            for (Workload* w : {&key, &value}) {
                TILEWRIGHT_RETURN_IF_ERROR(run.check(*w));
                TILEWRIGHT_RETURN_IF_ERROR(same_bits(clean, *w, [](RowIndex r) { return !(r.batch == 3 && r.head >= 2); }));
            }
        }
    return {};
}

Status empty_sequences(const CaseRunner& run) {
    TILEWRIGHT_RETURN_IF_ERROR(check_all(run, "hq2,hkv1,sq1", {0, 0}));
    TILEWRIGHT_RETURN_IF_ERROR(check_all(run, "hq2,hkv1,sq3,causal", {0, 2}));
    for (const char* text : {"b0,hq2,hkv1,sq1,skv64", "b2,hq2,hkv1,sq0,skv64"}) {
        Workload w = run.random(text);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(w));
    }
    return {};
}

Status long_sequences(const CaseRunner& run) {
    for (int64_t page : {0, 64})
        for (int count : {0, 1, 33}) TILEWRIGHT_RETURN_IF_ERROR(check(run, "hq2,hkv1,sq1", {10, 9000, 0, 300}, page, count));
    return {};
}

}  // namespace tilewright::decode_cases
