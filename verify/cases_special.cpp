// Cases about NaN and infinity, where they must show and where they must not, and about far offsets.
#include <cmath>
#include <limits>

#include "verify/cases.h"
#include "verify/device_workload.h"

namespace tilewright::cases {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void fill_row(Workload& w, const Tensor& tensor, int64_t batch, int64_t head, int64_t row, double number) {
    for (int64_t d = 0; d < tensor.sizes[3]; ++d) w.set(tensor, batch, head, row, d, number);
}

// Runs both; the rows that `included` names must not differ, and the changed one must still follow the reference.
Status unaffected(const CaseRunner& run, const Workload& before, Workload& after, const RowFilter& included) {
    Workload clean = before;
    TILEWRIGHT_RETURN_IF_ERROR(run.run(clean));
    TILEWRIGHT_RETURN_IF_ERROR(run.check(after));
    return same_bits(clean, after, included);
}

}  // namespace

Status visible_nan(const CaseRunner& run) {
    for (const char* text : {"b2,hq4,hkv2,sq70,causal", "b2,hq4,hkv2,sq70,causal,softcap,bias,alibi,sink"}) {
        const Workload clean = run.random(text);
        Workload key = clean;
        key.set(key.key, 1, 0, 40, 3, NAN);
        TILEWRIGHT_RETURN_IF_ERROR(at("NaN in a key", unaffected(run, clean, key, [](RowIndex r) { return !(r.batch == 1 && r.head < 2 && r.query >= 40); })));
        Workload query = clean;
        query.set(query.query, 0, 3, 5, 63, NAN);
        TILEWRIGHT_RETURN_IF_ERROR(at("NaN in a query", unaffected(run, clean, query, [](RowIndex r) { return !(r.batch == 0 && r.head == 3 && r.query == 5); })));
        Workload value = clean;
        value.set(value.value, 0, 1, 33, 7, NAN);
        TILEWRIGHT_RETURN_IF_ERROR(at("NaN in a value", unaffected(run, clean, value, [](RowIndex r) { return !(r.batch == 0 && r.head >= 2 && r.query >= 33); })));
        Workload unbounded = clean;
        unbounded.set(unbounded.value, 0, 1, 33, 7, -infinity);
        TILEWRIGHT_RETURN_IF_ERROR(at("infinity in a value", unaffected(run, clean, unbounded, [](RowIndex r) { return !(r.batch == 0 && r.head >= 2 && r.query >= 33); })));
        if (!clean.problem.bias) continue;
        Workload bias = clean;
        bias.set(bias.bias, 1, 2, 20, 10, NAN), bias.set(bias.bias, 1, 2, 20, 30, NAN);  // the second is hidden
        TILEWRIGHT_RETURN_IF_ERROR(at("NaN in a bias", unaffected(run, clean, bias, [](RowIndex r) { return !(r.batch == 1 && r.head == 2 && r.query == 20); })));
        bias = clean;
        bias.set(bias.bias, 1, 2, 20, 30, NAN);
        TILEWRIGHT_RETURN_IF_ERROR(at("NaN in a hidden bias", unaffected(run, clean, bias, [](RowIndex) { return true; })));
    }
    Workload all = run.random("sq40,skv70");  // not one finite score
    for (int64_t j = 0; j < 70; ++j) all.set(all.key, 0, 0, j, 0, NAN);
    return at("NaN in every score", run.check(all));
}

Status hidden_garbage(const CaseRunner& run) {
    struct Garbage {
        int64_t row;
        double key, value;
    };
    const Garbage garbage[] = {{0, NAN, NAN}, {50, NAN, 1}, {60, 1, infinity}, {61, 1, NAN}, {99, infinity, -infinity}};
    for (const char* text : {"hq2,sq70,skv100,causal", "hq2,sq70,skv100,causal,topleft", "hq2,sq70,skv100,window10:5", "hq2,sq100,skv100,window20:0,sink,softcap"}) {
        const Workload clean = run.random(text);
        for (const Garbage& g : garbage) {
            Workload dirty = clean;
            fill_row(dirty, dirty.key, 0, 1, g.row, g.key);
            fill_row(dirty, dirty.value, 0, 1, g.row, g.value);
            TILEWRIGHT_RETURN_IF_ERROR(run.run(dirty));
            Workload reference = clean;
            TILEWRIGHT_RETURN_IF_ERROR(run.run(reference));
            Status status = same_bits(reference, dirty, [&](RowIndex r) {
                KeyRange keys = visible_keys(clean.problem, r.query);
                return r.head == 0 || g.row < keys.begin || g.row >= keys.end;
            });
            TILEWRIGHT_RETURN_IF_ERROR(at(to_text(clean.problem) + ", key " + std::to_string(g.row), status));
        }
    }
    return {};
}

Status bias_hidden_garbage(const CaseRunner& run) {
    Workload clean = run.random("hq2,sq70,skv100,bias");
    for (int64_t h = 0; h < 2; ++h)
        for (int64_t i = 20; i < 70; ++i) clean.set(clean.bias, 0, h, i, 10, -infinity);
    for (auto [key, value] : {std::pair{double(NAN), 1.0}, {infinity, 1.0}, {-infinity, 1.0}, {1.0, double(NAN)}, {1.0, infinity}}) {
        Workload dirty = clean;
        fill_row(dirty, dirty.key, 0, 1, 10, key);
        fill_row(dirty, dirty.value, 0, 1, 10, value);
        Workload reference = clean;
        TILEWRIGHT_RETURN_IF_ERROR(run.run(reference));
        TILEWRIGHT_RETURN_IF_ERROR(run.run(dirty));
        TILEWRIGHT_RETURN_IF_ERROR(at("key " + std::to_string(key) + ", value " + std::to_string(value), same_bits(reference, dirty, [](RowIndex r) { return r.head == 0 || r.query >= 20; })));
    }
    return {};
}

// Two batches 2^31 elements apart. Only the rows that are used are ever touched, so that the memory need not be there.
Status far_offsets(const CaseRunner& run) {
    if (size_of(run.dtype()) > 2) return {StatusCode::unsupported, "would need more than 8 GiB of addresses a tensor"};
    constexpr int64_t apart = (int64_t{1} << 31) + 64;
    WorkloadOptions options;
    options.layout = Layout::heads_first;
    options.seed = run.seed();
    Workload w = make_workload(run.problem("b2,sq40,skv70,causal"), options);
    TILEWRIGHT_RETURN_IF_ERROR(run.run_far_apart(w, apart));
    return run.matches_reference(w);
}

}  // namespace tilewright::cases
