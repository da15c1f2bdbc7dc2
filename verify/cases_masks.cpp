// Cases about what a query sees.
#include <cmath>
#include <limits>
#include <numbers>

#include "verify/cases.h"

namespace tilewright::cases {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ln2 = std::numbers::ln2;

}  // namespace

Status rows_that_see_nothing(const CaseRunner& run) {
    Workload hand = run.counting("sq5,skv2,causal", 1);
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(hand, {0, 0, 0, 1, 1.5}, {-infinity, -infinity, -infinity, 0, ln2}));
    Workload top_left = run.random("b2,hq4,hkv2,sq200,skv37,window3:2,topleft");
    TILEWRIGHT_RETURN_IF_ERROR(run.check(top_left));
    Workload bottom_right = run.random("b2,hq4,hkv2,sq300,skv70,causal");
    return run.check(bottom_right);
}

Status alignment(const CaseRunner& run) {
    Workload bottom_right = run.counting("sq2,skv5,causal");
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(bottom_right, {1.5, 2}, {std::log(4), std::log(5)}));
    Workload top_left = run.counting("sq2,skv5,causal,topleft");
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(top_left, {0, 0.5}, {0, ln2}));
    for (const char* mask : {"causal", "window9:4"}) {
        std::string text = std::string("b2,hq2,sq150,skv150,") + mask;
        Workload one = run.random(text), other = run.random(text + ",topleft");
        TILEWRIGHT_RETURN_IF_ERROR(run.run(one));
        TILEWRIGHT_RETURN_IF_ERROR(run.run(other));
        TILEWRIGHT_RETURN_IF_ERROR(at("both alignments at equal lengths", same_bits(one, other)));
    }
    return {};
}

Status window(const CaseRunner& run) {
    const std::vector<double> causal_means{0, 0.5, 1, 1.5, 2, 2.5};
    std::vector<double> causal_lse;
    for (int keys = 1; keys <= 6; ++keys) causal_lse.push_back(std::log(keys));
    Workload narrow = run.counting("sq6,window2:0");
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(narrow, {0, 0.5, 1, 2, 3, 4}, {0, ln2, std::log(3), std::log(3), std::log(3), std::log(3)}));
    for (const char* text : {"sq6,window6:0", "sq6,window5:0", "sq6,causal"}) {
        Workload wide = run.counting(text);
        TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(wide, causal_means, causal_lse));
    }
    Workload self = run.counting("sq6,window0:0"), right = run.counting("sq6,window0:1");
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(self, {0, 1, 2, 3, 4, 5}, std::vector<double>(6, 0)));
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(right, {0.5, 1.5, 2.5, 3.5, 4.5, 5}, {}));
    for (auto [left, right_keys] : {std::pair{-1, 3}, {3, -1}, {0, 0}, {63, 0}, {64, 64}, {17, 100}, {1000, 1000}})
        for (const char* shape : {"hq2,sq150,skv150", "sq20,skv150", "sq150,skv20", "sq150,skv40,topleft"}) {
            WorkloadOptions options;
            options.seed = run.seed();
            Problem problem = run.problem(shape);
            problem.window_left = left, problem.window_right = right_keys;
            Workload w = make_workload(problem, options);
            TILEWRIGHT_RETURN_IF_ERROR(run.check(w, 100));
        }
    return {};
}

Status garbage_in_padding(const CaseRunner& run) {
    Workload slots = run.counting("sq1,skv16");
    for (int64_t slot = 13; slot < 16; ++slot)
        for (int64_t d = 0; d < slots.problem.head_dim; ++d)
            for (const Tensor* tensor : {&slots.key, &slots.value}) slots.set(*tensor, 0, 0, slot, d, slot == 14 ? infinity : NAN);
    keep_keys(slots, 0, 13);
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(slots, {6}, {std::log(13)}));

    // The same rows with and without infinity and NaN behind their ends.
    for (const char* mask : {"", ",causal", ",bias"}) {
        Workload clean = run.random(std::string("b2,hq2,sq80,skv80") + mask), dirty = clean;
        for (int64_t b = 0; b < 2; ++b)
            for (int64_t h = 0; h < 2; ++h)
                for (int64_t row = 70; row < 80; ++row)
                    for (int64_t d = 0; d < clean.problem.head_dim; ++d)
                        for (const Tensor* tensor : {&dirty.query, &dirty.key, &dirty.value}) dirty.set(*tensor, b, h, row, d, row % 2 ? NAN : -infinity);
        for (Workload* w : {&clean, &dirty}) {
            keep_keys(*w, 0, 70);
            keep_queries(*w, 0, 67);
            TILEWRIGHT_RETURN_IF_ERROR(run.run(*w));
        }
        TILEWRIGHT_RETURN_IF_ERROR(at("garbage behind the last row", same_bits(clean, dirty)));
    }
    for (const char* text : {"hq2,sq40,skv50,d40", "hq2,sq40,skv50,d13,dv21"}) {  // gaps behind every row hold NaN
        WorkloadOptions options;
        options.layout = Layout::gapped;
        Workload gaps = run.random(text, options);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(gaps));
    }
    return {};
}

Status empty_sequences(const CaseRunner& run) {
    Workload no_keys = run.counting("sq3,skv0");
    TILEWRIGHT_RETURN_IF_ERROR(run.by_hand(no_keys, {0, 0, 0}, {-infinity, -infinity, -infinity}));
    for (const char* text : {"b3,hq4,hkv2,sq70,skv0", "b2,hq2,sq40,skv0,causal", "sq0,skv5", "b2,hq4,hkv1,sq0,skv70,causal", "b0,hq2,sq5,skv7", "sq0,skv0"}) {
        Workload w = run.random(text);
        TILEWRIGHT_RETURN_IF_ERROR(run.check(w));
    }
    return {};
}

Status tile_edges(const CaseRunner& run) {
    const Config& config = run.config();
    int64_t queries[] = {1, config.block_q - 1, config.block_q, config.block_q + 1, 2 * config.block_q + 3};
    int64_t keys[] = {1, config.block_kv - 1, config.block_kv, config.block_kv + 1, 3 * config.block_kv - 1};
    for (const char* mask : {"", ",causal", ",window40:3", ",causal,topleft"})
        for (int64_t seq_q : queries)
            for (int64_t seq_kv : keys) {
                if (seq_q == 0 || seq_kv == 0) continue;
                // A bound of a few rows may be smaller than one rounding of an output: enough rows of single queries.
                Workload w = run.random((seq_q < 16 ? "b8,hq2,hkv1,sq" : "hq2,hkv1,sq") + std::to_string(seq_q) + ",skv" + std::to_string(seq_kv) + mask);
                TILEWRIGHT_RETURN_IF_ERROR(run.check(w, 48));
            }
    return {};
}

}  // namespace tilewright::cases
