// Attention in plain loops, in float64 and, for the tolerance, in the element type.
#include "verify/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "verify/element.h"
#include "verify/parallel.h"

namespace tilewright {
namespace {

// Rows of one (batch, query head) that are computed together, so that a key is decoded once for all of them.
struct Group {
    size_t first, count;
};
constexpr size_t group_rows = 16;

std::vector<Group> group(std::span<const RowIndex> rows) {
    std::vector<Group> groups;
    for (size_t i = 0; i < rows.size(); ++i) {
        bool same = !groups.empty() && rows[i].batch == rows[i - 1].batch && rows[i].head == rows[i - 1].head;
        if (same && groups.back().count < group_rows) ++groups.back().count;
        else groups.push_back({i, 1});
    }
    return groups;
}

void load_row(const TensorView& tensor, int64_t batch, int64_t head, int64_t row, std::vector<float>& to) {
    load_elements(tensor.dtype, tensor.address(batch, head, row, 0), tensor.strides[3], int64_t(to.size()), to.data());
}

// One row of scores in natural units, and what its softmax has become.
template <class Real>
struct Row {
    KeyRange keys{};
    std::vector<float> query;
    std::vector<Real> score, out;  // score[j - keys.begin]; -infinity: hidden
    std::vector<Real> squares;     // of the reference: the sum of the squares of what `out` is the sum of
    Real divisor = 1;  // of out, at the end
    Real lse = 0;
};

template <class Real>
constexpr bool is_reference = std::is_same_v<Real, double>;  // and not the naive form
template <class Real>
constexpr Real infinite = std::numeric_limits<Real>::infinity();

// dot, scale, softcap, bias, ALiBi: the order of docs/numerics.md.
template <class Real>
Real score_of(const AttentionInputs& in, const RowIndex& index, const std::vector<float>& query, const std::vector<float>& key, int64_t j, Real bias) {
    Real dot = 0;
    for (size_t d = 0; d < key.size(); ++d) dot += Real(query[d]) * Real(key[d]);
    Real score = Real(in.scale) * dot;
    if (in.problem.softcap) score = Real(in.softcap) * std::tanh(score / Real(in.softcap));
    score += bias;
    if (in.problem.alibi) {
        int64_t diagonal = in.problem.alignment == Alignment::bottom_right ? in.problem.seq_kv - in.problem.seq_q : 0;
        score -= Real(in.slope[index.head]) * Real(std::abs(index.query + diagonal - j));
    }
    return score;
}

// Scores become weights. The reference divides by their sum at the very end; the naive form divides first and rounds the
// probabilities to the element type. NaN never is a maximum, but it does reach the sum.
template <class Real>
void softmax(const AttentionInputs& in, const RowIndex& index, Row<Real>& row) {
    Real sink = in.problem.sink ? Real(in.sink[index.head]) : -infinite<Real>;
    Real maximum = sink;
    for (Real s : row.score) maximum = s > maximum ? s : maximum;
    Real reference = maximum == -infinite<Real> ? 0 : maximum, sum = std::exp(sink - reference);
    for (Real& s : row.score) sum += s = std::exp(s - reference);
    row.lse = reference + std::log(sum);
    row.divisor = sum == 0 ? 1 : sum;
    if constexpr (!is_reference<Real>) {
        for (float& weight : row.score) weight = float(round_to(in.problem.dtype, weight / row.divisor));
        row.divisor = 1;
    }
}

template <class Real>
void attend(const AttentionInputs& in, std::span<const RowIndex> rows, size_t first, Answer& answer) {
    const Problem& p = in.problem;
    int64_t batch = rows[0].batch, head = rows[0].head, kv_head = head / (p.heads_q / p.heads_kv);
    std::vector<Row<Real>> state(rows.size());
    KeyRange all{p.seq_kv, 0};
    for (size_t r = 0; r < rows.size(); ++r) {
        Row<Real>& row = state[r];
        row.keys = visible_keys(p, rows[r].query);
        row.query.resize(size_t(p.head_dim));
        row.score.assign(size_t(row.keys.end - row.keys.begin), -infinite<Real>);
        row.out.assign(size_t(p.head_dim_v), 0);
        if constexpr (is_reference<Real>) row.squares.assign(size_t(p.head_dim_v), 0);
        load_row(in.query, batch, head, rows[r].query, row.query);
        all = {std::min(all.begin, row.keys.begin), std::max(all.end, row.keys.end)};
    }
    std::vector<std::vector<char>> hidden(rows.size());  // by a bias of -infinity
    std::vector<float> key(size_t(p.head_dim)), value(size_t(p.head_dim_v));
    for (int64_t j = all.begin; j < all.end; ++j) {
        load_row(in.key, batch, kv_head, j, key);
        for (size_t r = 0; r < rows.size(); ++r) {
            Row<Real>& row = state[r];
            if (j < row.keys.begin || j >= row.keys.end) continue;
            Real bias = p.bias ? Real(in.bias.at(batch, head, rows[r].query, j)) : 0;
            hidden[r].push_back(bias == -infinite<Real>);
            if (!hidden[r].back()) row.score[size_t(j - row.keys.begin)] = score_of(in, rows[r], row.query, key, j, bias);
        }
    }
    for (size_t r = 0; r < rows.size(); ++r) softmax(in, rows[r], state[r]);
    for (int64_t j = all.begin; j < all.end; ++j) {
        load_row(in.value, batch, kv_head, j, value);
        for (size_t r = 0; r < rows.size(); ++r) {
            Row<Real>& row = state[r];
            if (j < row.keys.begin || j >= row.keys.end || hidden[r][size_t(j - row.keys.begin)]) continue;
            Real probability = row.score[size_t(j - row.keys.begin)];
            for (size_t d = 0; d < value.size(); ++d) {
                const Real term = probability * Real(value[d]);
                row.out[d] += term;
                if constexpr (is_reference<Real>) row.squares[d] += term * term;
            }
        }
    }
    for (size_t r = 0; r < rows.size(); ++r) {
        answer.lse[first + r] = double(state[r].lse);
        for (size_t d = 0; d < value.size(); ++d) {
            double x = double(state[r].out[d] / state[r].divisor);
            const size_t at = (first + r) * value.size() + d;
            answer.out[at] = is_reference<Real> ? x : round_to(p.dtype, x);
            if constexpr (is_reference<Real>) answer.roundings[at] = epsilon(p.dtype) / 2 * std::hypot(std::sqrt(state[r].squares[d]) / state[r].divisor, x);
        }
    }
}

template <class Real>
Answer attention(const AttentionInputs& in, std::span<const RowIndex> rows, int threads) {
    Answer answer{std::vector<double>(rows.size() * size_t(in.problem.head_dim_v)), std::vector<double>(rows.size())};
    if constexpr (is_reference<Real>) answer.roundings.resize(answer.out.size());
    std::vector<Group> groups = group(rows);
    parallel_for(int64_t(groups.size()), threads, [&](int64_t i) {
        const Group& g = groups[size_t(i)];
        attend<Real>(in, rows.subspan(g.first, g.count), g.first, answer);
    });
    return answer;
}

}  // namespace

const void* TensorView::address(int64_t batch, int64_t head, int64_t row, int64_t column) const {
    int64_t offset = batch * strides[0] + head * strides[1] + row * strides[2] + column * strides[3];
    return data + offset * int64_t(size_of(dtype));
}

double TensorView::at(int64_t batch, int64_t head, int64_t row, int64_t column) const { return load_element(dtype, address(batch, head, row, column)); }

KeyRange visible_keys(const Problem& p, int64_t query) {
    int64_t aligned = query + (p.alignment == Alignment::bottom_right ? p.seq_kv - p.seq_q : 0), reach = p.seq_q + p.seq_kv;
    int64_t begin = p.window_left < 0 ? 0 : aligned - std::min(p.window_left, reach);
    int64_t end = p.window_right < 0 ? p.seq_kv : aligned + std::min(p.window_right, reach) + 1;
    begin = std::clamp<int64_t>(begin, 0, p.seq_kv);
    return {begin, std::clamp(end, begin, p.seq_kv)};
}

Answer reference_forward(const AttentionInputs& inputs, std::span<const RowIndex> rows, int threads) { return attention<double>(inputs, rows, threads); }
Answer naive_forward(const AttentionInputs& inputs, std::span<const RowIndex> rows, int threads) { return attention<float>(inputs, rows, threads); }

}  // namespace tilewright
