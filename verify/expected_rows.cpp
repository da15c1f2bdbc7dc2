// The right answer for a workload, operation by operation.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "verify/check.h"
#include "verify/element.h"
#include "verify/reference_backward.h"
#include "verify/sequences.h"

namespace tilewright {
namespace {

// Multiplications of a backward above which only some rows of the gradients are computed.
constexpr double most_products = 3e9;

// Where one key dominates a row, the naive form's error is one rounding, which may be exact by luck; a kernel that rounds the same probability at another scale has
// no such luck. So the naive form is off by its roundings' largest, put together as errors are, at least.
std::vector<ExpectedRows> of_answers(const Workload& w, std::vector<RowIndex> rows, Answer reference, Answer naive) {
    for (size_t i = 0; i < naive.out.size(); ++i)
        if (std::abs(naive.out[i] - reference.out[i]) < reference.roundings[i]) naive.out[i] = reference.out[i] + reference.roundings[i];
    std::vector<ExpectedRows> expected{{"out", &Workload::out, rows, std::move(reference.out), std::move(naive.out)}};
    if (w.lse.present()) expected.push_back({"lse", &Workload::lse, std::move(rows), std::move(reference.lse), std::move(naive.lse)});
    return expected;
}

std::vector<RowIndex> some_rows(const Problem& problem, const CheckOptions& options) {
    return options.max_rows > 0 ? sample_rows(problem, options.max_rows, options.workload.seed) : all_rows(problem);
}

std::vector<ExpectedRows> forward_rows(const Workload& w, const CheckOptions& options) {
    std::vector<RowIndex> rows = some_rows(w.problem, options);
    Answer reference = reference_forward(w.inputs(), rows, options.threads), naive = naive_forward(w.inputs(), rows, options.threads);
    return of_answers(w, std::move(rows), std::move(reference), std::move(naive));
}

// Of one sequence of a packed workload: its share of the rows, drawn by a seed of its own.
CheckOptions options_of_sequence(const Workload& w, CheckOptions options, int64_t sequence) {
    if (options.max_rows > 0) options.max_rows = std::max<int64_t>(2, options.max_rows / w.problem.batch);
    options.workload.seed += uint64_t(sequence);
    return options;
}

// Rows of all sequences, or some of each: [sequence][head][query].
std::vector<RowIndex> sequence_rows(const Workload& w, const CheckOptions& options) {
    if (!w.problem.packed) return some_rows(w.problem, options);
    std::vector<RowIndex> rows;
    for (int64_t s = 0; s < w.problem.batch; ++s) {
        const Problem one = single_sequence(w.problem, w.query_lengths[size_t(s)], w.lengths[size_t(s)]);
        for (RowIndex row : some_rows(one, options_of_sequence(w, options, s))) rows.push_back({s, row.head, row.query});
    }
    return rows;
}

// Each sequence and query head is a forward problem of its own, over as many keys as the sequence has.
std::vector<ExpectedRows> rows_by_sequence(const Workload& w, const CheckOptions& options) {
    std::vector<RowIndex> rows = sequence_rows(w, options);
    std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> of_head;
    for (size_t i = 0; i < rows.size(); ++i) of_head[{rows[i].batch, rows[i].head}].push_back(i);
    auto columns = static_cast<size_t>(w.problem.head_dim_v);
    Answer all[2] = {{std::vector<double>(rows.size() * columns), std::vector<double>(rows.size())}, {}};
    all[1] = all[0], all[0].roundings = all[0].out;
    for (const auto& [of, indices] : of_head) {
        SequenceInputs one = sequence_inputs(w, of.first, of.second);
        std::vector<RowIndex> queries;
        for (size_t i : indices) queries.push_back({0, 0, rows[i].query});
        Answer part[2] = {reference_forward(one.inputs, queries, options.threads), naive_forward(one.inputs, queries, options.threads)};
        for (size_t n = 0; n < indices.size(); ++n) {
            std::memcpy(&all[0].roundings[indices[n] * columns], &part[0].roundings[n * columns], columns * sizeof(double));
            for (int a = 0; a < 2; ++a) {
                all[a].lse[indices[n]] = part[a].lse[n];
                std::memcpy(&all[a].out[indices[n] * columns], &part[a].out[n * columns], columns * sizeof(double));
            }
        }
    }
    for (RowIndex& row : rows) row = w.row_of(row);
    return of_answers(w, std::move(rows), std::move(all[0]), std::move(all[1]));
}

// As many rows of a tensor as are wanted, over all of its heads: those of a problem with these sizes.
std::vector<RowIndex> rows_of(const Tensor& tensor, const Problem& problem, const CheckOptions& options, bool all) {
    Problem p = problem;
    p.heads_q = tensor.sizes[1], p.heads_kv = tensor.sizes[1], p.seq_q = tensor.sizes[2];
    return all ? all_rows(p) : some_rows(p, options);
}

// A sink's gradient is a single number whose naive error may cancel by luck. Its terms' errors do not: twice the root of their squares' sum.
std::vector<double> naive_sinks(const Problem& p, const Gradients& reference, const Gradients& naive) {
    std::vector<double> squares(size_t(p.heads_q)), sinks = reference.sink;
    for (size_t n = 0; n < reference.sink_terms.size(); ++n) {
        double error = naive.sink_terms[n] - reference.sink_terms[n];
        squares[n / size_t(p.seq_q) % size_t(p.heads_q)] += error * error;
    }
    for (size_t h = 0; h < sinks.size(); ++h) sinks[h] += 2 * std::sqrt(squares[h]);
    return sinks;
}

// dBias summed over the dimensions in which the tensor has one member: first over keys, then over all others.
struct BiasSums {
    explicit BiasSums(const Tensor& tensor) : sizes(tensor.sizes), sums(size_t(sizes[0] * sizes[1] * sizes[2] * sizes[3])) {}
    std::array<int64_t, 4> sizes;
    std::vector<double> sums;
    double& at(int64_t b, int64_t h, int64_t i, int64_t j) {
        auto place = [&](size_t d, int64_t x) { return sizes[d] == 1 ? 0 : x; };
        return sums[size_t(((place(0, b) * sizes[1] + place(1, h)) * sizes[2] + place(2, i)) * sizes[3] + place(3, j))];
    }
    // `joined` says what a sum becomes by another number.
    template <class Join>
    void add(const Problem& p, const std::vector<double>& all, Join&& joined) {
        size_t n = 0;
        for (int64_t b = 0; b < p.batch; ++b)
            for (int64_t h = 0; h < p.heads_q; ++h)
                for (int64_t i = 0; i < p.seq_q; ++i) {
                    double of_row = 0;
                    for (int64_t j = 0; j < p.seq_kv; ++j, ++n) {
                        if (sizes[3] == 1) of_row += all[n];
                        else at(b, h, i, j) = joined(at(b, h, i, j), all[n]);
                    }
                    if (sizes[3] == 1) at(b, h, i, 0) = joined(at(b, h, i, 0), of_row);
                }
    }
};

// A sum's naive error may cancel by luck, as that of a sink. So what is naive is off by twice the root of the sum of its terms' squared errors, and by
// what summing them up in float and rounding the sum cost.
void add_bias_rows(const Workload& w, bool all, const std::vector<RowIndex>& queries, const Gradients& reference, const Gradients& naive, std::vector<ExpectedRows>& expected) {
    const Problem& p = w.problem;
    ExpectedRows rows{"bias_gradient", &Workload::bias_gradient, {}, {}, {}, reference.largest_bias_term};
    const Tensor& tensor = w.bias_gradient;
    bool whole = tensor.sizes == std::array{p.batch, p.heads_q, p.seq_q, p.seq_kv};
    if (whole) {
        rows.rows = queries, rows.reference = reference.bias, rows.naive = naive.bias;
        for (double& x : rows.naive) x = round_to(p.dtype, x);
    } else if (all) {
        BiasSums sums(tensor), squares(tensor), exact(tensor), in_float(tensor);
        auto join = [](double sum, double x) { return sum + x; };
        sums.add(p, reference.bias, join), exact.add(p, naive.bias, join);
        in_float.add(p, naive.bias, [](double sum, double x) { return double(float(sum) + float(x)); });
        std::vector<double> errors = naive.bias;
        for (size_t n = 0; n < errors.size(); ++n) errors[n] -= reference.bias[n];
        squares.add(p, errors, [](double sum, double x) { return sum + x * x; });
        rows.reference = rows.naive = sums.sums;
        for (size_t n = 0; n < rows.naive.size(); ++n) rows.naive[n] += 2 * std::sqrt(squares.sums[n]) + std::abs(in_float.sums[n] - exact.sums[n]) + epsilon(p.dtype) / 2 * std::abs(sums.sums[n]);
        for (int64_t b = 0; b < tensor.sizes[0]; ++b)
            for (int64_t h = 0; h < tensor.sizes[1]; ++h)
                for (int64_t i = 0; i < tensor.sizes[2]; ++i) rows.rows.push_back({b, h, i});
    }
    expected.push_back(std::move(rows));
}

std::vector<ExpectedRows> backward_rows(const Workload& w, const CheckOptions& options) {
    const Problem& p = w.problem;
    double products = double(p.batch * p.heads_q) * double(visible_pairs(p)) * double(3 * p.head_dim + 2 * p.head_dim_v);
    bool all = products <= most_products;
    std::vector<RowIndex> queries = rows_of(w.query, p, options, all), keys = rows_of(w.key, p, options, all);
    OutputGradients given{w.view(w.out_gradient), w.view(w.lse_gradient)};
    ForwardResults results{w.view(w.out), w.view(w.lse)};
    Gradients reference = all ? reference_backward(w.inputs(), given, options.threads) : reference_gradient_rows(w.inputs(), given, results, queries, keys, options.threads);
    Gradients naive = all ? naive_backward(w.inputs(), given, results, options.threads) : naive_gradient_rows(w.inputs(), given, results, queries, keys, options.threads);
    std::vector<ExpectedRows> expected{{"query_gradient", &Workload::query_gradient, queries, reference.query, naive.query, reference.largest_term},
                                       {"key_gradient", &Workload::key_gradient, keys, reference.key, naive.key, reference.largest_term},
                                       {"value_gradient", &Workload::value_gradient, keys, reference.value, naive.value}};
    if (w.bias_gradient.present()) add_bias_rows(w, all, queries, reference, naive, expected);
    if (!p.sink) return expected;
    expected.push_back({"sink_gradient", &Workload::sink_gradient, {}, reference.sink, naive_sinks(p, reference, naive)});
    for (int64_t h = 0; h < p.heads_q; ++h) expected.back().rows.push_back({0, h, 0});
    return expected;
}

// Those of each sequence alone, at the rows where they lie. A sink's gradient is the sum over all of them, and so are its errors' squares.
std::vector<ExpectedRows> packed_backward_rows(const Workload& w, const CheckOptions& options) {
    std::vector<ExpectedRows> all;
    auto add = [&](ExpectedRows& sum, const ExpectedRows& part, int64_t first) {
        sum.terms = std::max(sum.terms, part.terms);
        if (part.tensor == &Workload::sink_gradient && !sum.rows.empty()) {
            for (size_t h = 0; h < sum.reference.size(); ++h) {
                const double error = std::hypot(sum.naive[h] - sum.reference[h], part.naive[h] - part.reference[h]);
                sum.reference[h] += part.reference[h], sum.naive[h] = sum.reference[h] + error;
            }
            return;
        }
        for (const RowIndex& row : part.rows) sum.rows.push_back({row.batch, row.head, row.query + first});
        sum.reference.insert(sum.reference.end(), part.reference.begin(), part.reference.end());
        sum.naive.insert(sum.naive.end(), part.naive.begin(), part.naive.end());
    };
    Workload by_sequence = w;
    for_each_sequence(by_sequence, [&](Workload& one, int64_t s) {
        const std::vector<ExpectedRows> parts = backward_rows(one, options_of_sequence(w, options, s));
        for (size_t i = 0; i < parts.size(); ++i) {
            if (i == all.size()) all.push_back({parts[i].name, parts[i].tensor, {}, {}, {}, 0});
            const bool of_keys = parts[i].tensor == &Workload::key_gradient || parts[i].tensor == &Workload::value_gradient;
            const std::vector<int64_t>& starts = of_keys ? w.key_starts : w.query_starts;
            add(all[i], parts[i], parts[i].tensor == &Workload::sink_gradient ? 0 : starts[size_t(s)] - starts.front());
        }
    });
    return all;
}

}  // namespace

std::vector<ExpectedRows> expected_rows(const Workload& w, const CheckOptions& options) {
    switch (w.problem.operation) {
        case Operation::forward: return w.problem.packed ? rows_by_sequence(w, options) : forward_rows(w, options);
        case Operation::backward: return w.problem.packed ? packed_backward_rows(w, options) : backward_rows(w, options);
        case Operation::decode: return rows_by_sequence(w, options);
    }
    return {};
}

}  // namespace tilewright
