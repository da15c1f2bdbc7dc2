// A decode call with its memory: random sequences, dense or in pages, everything unused NaN, and the float64 answer.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tilewright/attention.h"

namespace tilewright {

struct DecodeCall {
    Problem problem;  // fp32 or bf16; seq_kv is the most keys
    std::vector<int32_t> lengths, table;
    int64_t page_size = 0;    // 0: dense
    bool rows_first = false;  // pages or sequences as [row][head][column]
    float softcap = 3;
    std::vector<unsigned char> query, key, value, out, bias;
    std::vector<float> lse, slope, sink;

    size_t element() const { return size_of(problem.dtype); }
    int64_t table_stride() const { return page_size ? (problem.seq_kv + page_size - 1) / page_size : 0; }
    InputTensor cache(const std::vector<unsigned char>& bytes, int64_t columns) const {
        int64_t rows = page_size ? page_size : problem.seq_kv, heads = problem.heads_kv;
        return {bytes.data(), heads * rows * columns, rows_first ? columns : rows * columns, rows_first ? heads * columns : columns, 1};
    }
    // Of the first column of a key in the cache, in elements.
    int64_t place(int64_t sequence, int64_t head, int64_t row, int64_t columns) const {
        InputTensor t = cache(key, columns);
        int64_t block = page_size ? table[static_cast<size_t>(sequence * table_stride() + row / page_size)] : sequence;
        return block * t.batch_stride + head * t.head_stride + (page_size ? row % page_size : row) * t.row_stride;
    }
    double get(const std::vector<unsigned char>& from, int64_t index) const {
        float x;
        uint16_t half;
        if (problem.dtype == DType::fp32) return std::memcpy(&x, from.data() + 4 * index, 4), x;
        std::memcpy(&half, from.data() + 2 * index, 2);
        uint32_t bits = uint32_t{half} << 16;
        return std::memcpy(&x, &bits, 4), x;
    }
    void set(std::vector<unsigned char>& to, int64_t index, float x) const {
        if (problem.dtype == DType::fp32) return void(std::memcpy(to.data() + 4 * index, &x, 4));
        uint32_t bits;
        std::memcpy(&bits, &x, 4);
        uint16_t half = static_cast<uint16_t>(bits >> 16);
        std::memcpy(to.data() + 2 * index, &half, 2);
    }

    DecodeCall(const char* text, std::vector<int32_t> of, int64_t page = 0, bool rows = false, unsigned seed = 1) : lengths(std::move(of)), page_size(page), rows_first(rows) {
        problem = *parse_problem(text);
        problem.batch = static_cast<int64_t>(lengths.size());
        const Problem& p = problem;
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        int64_t pages = p.batch * table_stride() + 3, blocks = page_size ? pages : p.batch, rows_of_block = page_size ? page_size : p.seq_kv;
        std::vector<int32_t> order(static_cast<size_t>(pages));
        for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
        std::shuffle(order.begin(), order.end(), random);
        table.assign(static_cast<size_t>(p.batch * table_stride()), 0x7fffffff);
        for (int64_t s = 0, next = 0; s < p.batch; ++s)
            for (int64_t i = 0; page_size && i * page_size < lengths[static_cast<size_t>(s)]; ++i)
                table[static_cast<size_t>(s * table_stride() + i)] = order[static_cast<size_t>(next++)];
        auto blank = [&](int64_t elements) { return std::vector<unsigned char>(static_cast<size_t>(elements) * element(), 0xff); };
        query = blank(p.batch * p.heads_q * p.seq_q * p.head_dim), out = blank(p.batch * p.heads_q * p.seq_q * p.head_dim_v);
        key = blank(blocks * p.heads_kv * rows_of_block * p.head_dim), value = blank(blocks * p.heads_kv * rows_of_block * p.head_dim_v);
        for (int64_t i = 0; i < p.batch * p.heads_q * p.seq_q * p.head_dim; ++i) set(query, i, normal(random));
        for (int64_t s = 0; s < p.batch; ++s)
            for (int64_t head = 0; head < p.heads_kv; ++head)
                for (int64_t row = 0; row < lengths[static_cast<size_t>(s)]; ++row) {
                    for (int64_t c = 0; c < p.head_dim; ++c) set(key, place(s, head, row, p.head_dim) + c, normal(random));
                    for (int64_t c = 0; c < p.head_dim_v; ++c) set(value, place(s, head, row, p.head_dim_v) + c, normal(random));
                }
        if (p.bias) bias = blank(p.heads_q * p.seq_kv);  // [heads_q][seq_kv], the same for all sequences and queries
        for (int64_t i = 0; p.bias && i < p.heads_q * p.seq_kv; ++i) set(bias, i, i % p.seq_kv % 7 == 3 ? -INFINITY : normal(random));  // every seventh key is hidden
        lse.assign(static_cast<size_t>(p.batch * p.heads_q * p.seq_q), NAN);
        for (int64_t head = 0; head < p.heads_q; ++head) slope.push_back(0.25f / static_cast<float>(head + 1)), sink.push_back(normal(random));
    }

    DecodeTensors tensors() {
        const Problem& p = problem;
        DecodeTensors t;
        t.query = dense(static_cast<const void*>(query.data()), p.heads_q, p.seq_q, p.head_dim);
        t.key = cache(key, p.head_dim), t.value = cache(value, p.head_dim_v);
        t.out = dense(static_cast<void*>(out.data()), p.heads_q, p.seq_q, p.head_dim_v);
        t.lse = lse.data(), t.lengths = lengths.data();
        if (page_size) t.block_table = table.data(), t.table_stride = table_stride(), t.page_size = page_size, t.pages = problem.batch * table_stride() + 3;
        if (p.bias) t.bias = {bias.data(), 0, p.seq_kv, 0, 1};
        if (p.alibi) t.alibi_slope = slope.data();
        if (p.sink) t.sink = sink.data();
        if (p.softcap) t.softcap = softcap;
        return t;
    }
    // Runs the call over outputs of NaN, with a fresh workspace.
    Status run(Attention& attention, int splits, std::vector<float>& workspace) {
        std::fill(out.begin(), out.end(), 0xff), std::fill(lse.begin(), lse.end(), NAN);
        Result<int64_t> bytes = attention.decode_workspace_bytes(problem, splits);
        if (!bytes.ok()) return bytes.status();
        workspace.assign(static_cast<size_t>(*bytes + 64) / 4, 0.0f);
        DecodeTensors t = tensors();
        void* start = workspace.data();
        size_t space = static_cast<size_t>(*bytes + 64);
        t.workspace = std::align(16, static_cast<size_t>(*bytes), start, space), t.workspace_bytes = *bytes, t.splits = splits;
        return attention.decode(problem, t);
    }

    // What one row must be: the definition of docs/numerics.md in float64.
    void reference_row(int64_t s, int64_t head, int64_t query_row, std::vector<double>& row, double& log_sum) const {
        const Problem& p = problem;
        int64_t keys = lengths[static_cast<size_t>(s)], aligned = query_row + (p.alignment == Alignment::bottom_right ? keys - p.seq_q : 0);
        int64_t begin = p.window_left < 0 ? 0 : std::max<int64_t>(0, aligned - p.window_left);
        int64_t end = p.window_right < 0 ? keys : std::min(keys, aligned + p.window_right + 1), kv_head = head / (p.heads_q / p.heads_kv);
        double sum = p.sink ? std::exp(double{sink[static_cast<size_t>(head)]}) : 0;
        row.assign(static_cast<size_t>(p.head_dim_v), 0);
        for (int64_t j = begin; j < end; ++j) {
            double score = 0, added = p.bias ? get(bias, head * p.seq_kv + j) : 0;
            if (std::isinf(added)) continue;
            for (int64_t c = 0; c < p.head_dim; ++c)
                score += get(query, ((s * p.heads_q + head) * p.seq_q + query_row) * p.head_dim + c) * get(key, place(s, kv_head, j, p.head_dim) + c);
            score /= std::sqrt(static_cast<double>(p.head_dim));
            if (p.softcap) score = softcap * std::tanh(score / softcap);
            if (p.alibi) score -= slope[static_cast<size_t>(head)] * static_cast<double>(std::abs(aligned - j));
            double weight = std::exp(score + added);
            sum += weight;
            for (int64_t c = 0; c < p.head_dim_v; ++c) row[static_cast<size_t>(c)] += weight * get(value, place(s, kv_head, j, p.head_dim_v) + c);
        }
        for (double& x : row) x = sum > 0 ? x / sum : 0;
        log_sum = std::log(sum);
    }

    // All rows, one after another; computed once, from what the call holds then.
    struct Expected {
        std::vector<double> rows, log_sums;
    };
    const Expected& expected() const {
        if (expected_.log_sums.empty())
            for (int64_t s = 0; s < problem.batch; ++s)
                for (int64_t head = 0; head < problem.heads_q; ++head)
                    for (int64_t q = 0; q < problem.seq_q; ++q) {
                        std::vector<double> row;
                        reference_row(s, head, q, row, expected_.log_sums.emplace_back());
                        expected_.rows.insert(expected_.rows.end(), row.begin(), row.end());
                    }
        return expected_;
    }

    void forget_expected() { expected_ = {}; }  // something was changed since

    // Every element: as close as one rounding to the type and float32 sums allow; `rounded`: that of the probabilities too.
    void expect_right(const std::string& what, bool rounded = false) const {
        const Problem& p = problem;
        double tolerance = (p.dtype == DType::fp32 ? 0 : rounded ? 0x1p-7 : 0x1p-8) + 2e-6;
        for (int64_t i = 0; i < p.batch * p.heads_q * p.seq_q; ++i) {
            double log_sum = expected().log_sums[static_cast<size_t>(i)], got = lse[static_cast<size_t>(i)];
            std::string where = what + ", sequence " + std::to_string(i / p.seq_q / p.heads_q) + " head " + std::to_string(i / p.seq_q % p.heads_q) + " query " + std::to_string(i % p.seq_q);
            if (std::isinf(log_sum)) ASSERT_EQ(got, -std::numeric_limits<double>::infinity()) << where;
            else ASSERT_NEAR(got, log_sum, 2e-5) << where;
            for (int64_t c = 0; c < p.head_dim_v; ++c) {
                double x = expected().rows[static_cast<size_t>(i * p.head_dim_v + c)], is = get(out, i * p.head_dim_v + c);
                if (std::isfinite(x)) ASSERT_NEAR(is, x, tolerance * std::max(1.0, std::abs(x))) << where << " column " << c;
                else ASSERT_TRUE(std::isnan(x) ? std::isnan(is) : is == x) << where << " column " << c << " is " << is << ", not " << x;
            }
        }
    }

private:
    mutable Expected expected_;
};

}  // namespace tilewright
