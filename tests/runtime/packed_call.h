// A call with packed sequences and its memory: random rows, every unused one NaN, and the float64 answer of each sequence.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tilewright/attention.h"

namespace tilewright {

struct PackedCall {
    Problem problem;  // fp32 or bf16
    std::vector<int64_t> query_lengths, key_lengths;
    std::vector<int64_t> query_starts{2}, key_starts{3};  // unused rows come first, and last
    std::vector<int32_t> narrow_query_starts, narrow_key_starts;
    bool wide = false, heads_first = false;  // tensors are [head][row][column] instead of [row][head][column]
    int64_t query_rows, key_rows;
    float softcap = 3;
    std::vector<unsigned char> query, key, value, out;
    std::vector<float> lse, slope, sink;

    size_t element() const { return size_of(problem.dtype); }
    double get(const std::vector<unsigned char>& from, int64_t index) const {
        uint32_t bits = 0;
        std::memcpy(reinterpret_cast<char*>(&bits) + 4 - element(), from.data() + element() * static_cast<size_t>(index), element());
        return __builtin_bit_cast(float, bits);
    }
    void set(std::vector<unsigned char>& to, int64_t index, float x) const {
        const uint32_t bits = __builtin_bit_cast(uint32_t, x);
        std::memcpy(to.data() + element() * static_cast<size_t>(index), reinterpret_cast<const char*>(&bits) + 4 - element(), element());
    }
    InputTensor view(const std::vector<unsigned char>& of, int64_t heads, int64_t rows, int64_t columns) const {
        return {of.data(), -12345, heads_first ? rows * columns : columns, heads_first ? columns : heads * columns, 1};
    }
    static int64_t place(const InputTensor& t, int64_t head, int64_t row) { return head * t.head_stride + row * t.row_stride; }

    // `poisoned`: all rows of that sequence are NaN.
    PackedCall(const char* text, std::vector<int64_t> queries, std::vector<int64_t> keys, unsigned seed = 1, int poisoned = -1)
        : query_lengths(std::move(queries)), key_lengths(std::move(keys)), wide(seed % 2 != 0), heads_first(seed % 3 == 0) {
        problem = *parse_problem(text);
        problem.batch = static_cast<int64_t>(query_lengths.size());
        problem.seq_q = problem.seq_kv = 0;
        for (size_t i = 0; i < query_lengths.size(); ++i) {
            query_starts.push_back(query_starts.back() + query_lengths[i]), key_starts.push_back(key_starts.back() + key_lengths[i]);
            problem.seq_q = std::max(problem.seq_q, query_lengths[i]), problem.seq_kv = std::max(problem.seq_kv, key_lengths[i]);
        }
        query_rows = query_starts.back() + 5, key_rows = key_starts.back() + 7;
        narrow_query_starts.assign(query_starts.begin(), query_starts.end()), narrow_key_starts.assign(key_starts.begin(), key_starts.end());
        const Problem& p = problem;
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        auto filled = [&](int64_t heads, int64_t rows, int64_t columns, const std::vector<int64_t>& starts) {
            std::vector<unsigned char> bytes(static_cast<size_t>(heads * rows * columns) * element(), 0xff);
            const InputTensor t = view(bytes, heads, rows, columns);
            for (int64_t head = 0; head < heads; ++head)
                for (int64_t row = starts.front(); row < starts.back(); ++row)
                    for (int64_t c = 0; c < columns; ++c) {
                        const bool poison = poisoned >= 0 && row >= starts[static_cast<size_t>(poisoned)] && row < starts[static_cast<size_t>(poisoned) + 1];
                        set(bytes, place(t, head, row) + c, poison ? NAN : normal(random));
                    }
            return bytes;
        };
        query = filled(p.heads_q, query_rows, p.head_dim, query_starts), key = filled(p.heads_kv, key_rows, p.head_dim, key_starts);
        value = filled(p.heads_kv, key_rows, p.head_dim_v, key_starts);
        out.assign(static_cast<size_t>(p.heads_q * query_rows * p.head_dim_v) * element(), 0xff);
        lse.assign(static_cast<size_t>(p.heads_q * query_rows), NAN);
        for (int64_t head = 0; head < p.heads_q; ++head) slope.push_back(0.25f / static_cast<float>(head + 1)), sink.push_back(normal(random));
    }

    ForwardTensors tensors() {
        const Problem& p = problem;
        ForwardTensors t;
        t.query = view(query, p.heads_q, query_rows, p.head_dim), t.key = view(key, p.heads_kv, key_rows, p.head_dim);
        t.value = view(value, p.heads_kv, key_rows, p.head_dim_v);
        const InputTensor o = view(out, p.heads_q, query_rows, p.head_dim_v);
        t.out = {out.data(), o.batch_stride, o.head_stride, o.row_stride, 1}, t.lse = lse.data();
        if (p.alibi) t.alibi_slope = slope.data();
        if (p.sink) t.sink = sink.data();
        if (p.softcap) t.softcap = softcap;
        return t;
    }
    PackedSequences sequences() const {
        if (wide) return {query_starts.data(), key_starts.data(), IndexType::int64, query_rows, key_rows};
        return {narrow_query_starts.data(), narrow_key_starts.data(), IndexType::int32, query_rows, key_rows};
    }

    // What one row must be: the definition of docs/numerics.md in float64.
    void reference_row(size_t s, int64_t head, int64_t i, std::vector<double>& row, double& log_sum) const {
        const Problem& p = problem;
        const InputTensor q = view(query, p.heads_q, query_rows, p.head_dim), k = view(key, p.heads_kv, key_rows, p.head_dim), v = view(value, p.heads_kv, key_rows, p.head_dim_v);
        int64_t keys = key_lengths[s], aligned = i + (p.alignment == Alignment::bottom_right ? keys - query_lengths[s] : 0);
        int64_t begin = p.window_left < 0 ? 0 : std::max<int64_t>(0, aligned - p.window_left), end = p.window_right < 0 ? keys : std::min(keys, aligned + p.window_right + 1);
        int64_t kv_head = head / (p.heads_q / p.heads_kv);
        double sum = p.sink ? std::exp(double{sink[static_cast<size_t>(head)]}) : 0;
        row.assign(static_cast<size_t>(p.head_dim_v), 0);
        for (int64_t j = begin; j < end; ++j) {
            double score = 0;
            for (int64_t c = 0; c < p.head_dim; ++c)
                score += get(query, place(q, head, query_starts[s] + i) + c) * get(key, place(k, kv_head, key_starts[s] + j) + c);
            score /= std::sqrt(static_cast<double>(p.head_dim));
            if (p.softcap) score = softcap * std::tanh(score / softcap);
            if (p.alibi) score -= slope[static_cast<size_t>(head)] * static_cast<double>(std::abs(aligned - j));
            const double weight = std::exp(score);
            sum += weight;
            for (int64_t c = 0; c < p.head_dim_v; ++c) row[static_cast<size_t>(c)] += weight * get(value, place(v, kv_head, key_starts[s] + j) + c);
        }
        for (double& x : row) x = sum == 0 ? 0 : x / sum;
        log_sum = std::log(sum);
    }

    // Every element of every sequence, and NaN where there is none. Sequence `poisoned` is NaN where it sees anything.
    void expect_right(const std::string& what, int poisoned = -1) const {
        const Problem& p = problem;
        const InputTensor o = view(out, p.heads_q, query_rows, p.head_dim_v);
        double tolerance = (p.dtype == DType::fp32 ? 0 : 0x1p-7) + 2e-6;
        std::vector<double> expected;
        std::vector<bool> used(lse.size());
        for (size_t s = 0; s < query_lengths.size(); ++s)
            for (int64_t head = 0; head < p.heads_q; ++head)
                for (int64_t i = 0; i < query_lengths[s]; ++i) {
                    const int64_t row = query_starts[s] + i;
                    const auto at = static_cast<size_t>(head * query_rows + row);
                    double log_sum, got = lse[at];
                    used[at] = true;
                    reference_row(s, head, i, expected, log_sum);
                    const std::string where = what + ", sequence " + std::to_string(s) + " head " + std::to_string(head) + " query " + std::to_string(i);
                    if (std::isnan(log_sum)) ASSERT_TRUE(static_cast<int>(s) == poisoned && std::isnan(got)) << where;
                    else if (std::isinf(log_sum)) ASSERT_EQ(got, -std::numeric_limits<double>::infinity()) << where;
                    else ASSERT_NEAR(got, log_sum, 2e-5) << where;
                    for (int64_t c = 0; c < p.head_dim_v; ++c) {
                        const double x = expected[static_cast<size_t>(c)], y = get(out, place(o, head, row) + c);
                        if (std::isnan(x)) ASSERT_TRUE(std::isnan(y)) << where << " column " << c;
                        else ASSERT_NEAR(y, x, tolerance * std::max(1.0, std::abs(x))) << where << " column " << c;
                    }
                }
        for (int64_t head = 0; head < p.heads_q; ++head)
            for (int64_t row = 0; row < query_rows; ++row) {
                const auto at = static_cast<size_t>(head * query_rows + row);
                if (used[at]) continue;
                ASSERT_TRUE(std::isnan(lse[at])) << what << ": lse of unused row " << row;
                for (int64_t c = 0; c < p.head_dim_v; ++c) ASSERT_TRUE(std::isnan(get(out, place(o, head, row) + c))) << what << ": unused row " << row;
            }
    }
};

// Lengths from 0 to `longest`, many of them 0 or small.
inline std::vector<int64_t> random_lengths(std::mt19937& random, size_t sequences, int64_t longest) {
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < sequences; ++i)
        switch (random() % 4) {
            case 0: lengths.push_back(0); break;
            case 1: lengths.push_back(static_cast<int64_t>(random() % 4)); break;
            default: lengths.push_back(static_cast<int64_t>(random()) % (longest + 1));
        }
    return lengths;
}

}  // namespace tilewright
