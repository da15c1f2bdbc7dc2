// A call that appends, with its memory: random bytes everywhere, and what the cache must hold afterwards.
#pragma once
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tilewright/attention.h"

namespace tilewright {

struct AppendCall {
    Problem problem;
    std::vector<int32_t> lengths, counts, table;
    int64_t rows, page_size, pages = 0, table_stride = 0;
    std::vector<unsigned char> key, value, key_cache, value_cache;
    uint32_t status = ~0u;

    AppendCall(const char* text, std::vector<int32_t> of_lengths, std::vector<int32_t> of_counts, int64_t new_rows, int64_t page)
        : problem(*parse_problem(text)), lengths(std::move(of_lengths)), counts(std::move(of_counts)), rows(new_rows), page_size(page) {
        problem.batch = static_cast<int64_t>(lengths.size());
        const Problem& p = problem;
        std::mt19937 random(3);
        if (page) {
            table_stride = (p.seq_kv + page - 1) / page + 1, pages = p.batch * table_stride + 2;
            for (int64_t i = 0; i < p.batch * table_stride; ++i) table.push_back(static_cast<int32_t>(i + 1));
            std::shuffle(table.begin(), table.end(), random);
        }
        const size_t element = size_of(p.dtype);
        auto filled = [&](int64_t elements) {
            std::vector<unsigned char> bytes(static_cast<size_t>(elements) * element);
            for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
            return bytes;
        };
        const int64_t blocks = page ? pages : p.batch, block_rows = page ? page : p.seq_kv;
        key = filled(p.batch * p.heads_kv * rows * p.head_dim), value = filled(p.batch * p.heads_kv * rows * p.head_dim_v);
        key_cache = filled(blocks * p.heads_kv * block_rows * p.head_dim), value_cache = filled(blocks * p.heads_kv * block_rows * p.head_dim_v);
    }
    AppendTensors tensors() {
        const Problem& p = problem;
        const int64_t block_rows = page_size ? page_size : p.seq_kv;
        AppendTensors t;
        t.key = dense(static_cast<const void*>(key.data()), p.heads_kv, rows, p.head_dim), t.value = dense(static_cast<const void*>(value.data()), p.heads_kv, rows, p.head_dim_v);
        t.key_cache = dense(static_cast<void*>(key_cache.data()), p.heads_kv, block_rows, p.head_dim);
        t.value_cache = dense(static_cast<void*>(value_cache.data()), p.heads_kv, block_rows, p.head_dim_v);
        t.rows = rows, t.lengths = lengths.data(), t.counts = counts.empty() ? nullptr : counts.data(), t.status = &status;
        if (page_size) t.block_table = table.data(), t.table_stride = table_stride, t.page_size = page_size, t.pages = pages;
        return t;
    }
    bool fits(int64_t s) const {
        const int64_t length = lengths[static_cast<size_t>(s)], count = counts.empty() ? rows : counts[static_cast<size_t>(s)];
        return length >= 0 && count >= 0 && count <= rows && length + count <= problem.seq_kv;
    }
    // What the cache must become: sequences that do not fit change nothing.
    std::vector<unsigned char> after(std::vector<unsigned char> cache, const std::vector<unsigned char>& from, int64_t columns) const {
        const int64_t heads = problem.heads_kv, block_rows = page_size ? page_size : problem.seq_kv;
        const size_t bytes = static_cast<size_t>(columns) * size_of(problem.dtype);
        for (int64_t s = 0; s < problem.batch; ++s) {
            if (!fits(s)) continue;
            for (int64_t head = 0; head < heads; ++head)
                for (int64_t row = 0; row < (counts.empty() ? rows : counts[static_cast<size_t>(s)]); ++row) {
                    int64_t place = lengths[static_cast<size_t>(s)] + row, block = s;
                    if (page_size) block = table[static_cast<size_t>(s * table_stride + place / page_size)], place %= page_size;
                    std::memcpy(cache.data() + static_cast<size_t>((block * heads + head) * block_rows + place) * bytes,
                                from.data() + static_cast<size_t>((s * heads + head) * rows + row) * bytes, bytes);
                }
        }
        return cache;
    }
    std::vector<unsigned char> keys_after() const { return after(key_cache, key, problem.head_dim); }
    std::vector<unsigned char> values_after() const { return after(value_cache, value, problem.head_dim_v); }
};

}  // namespace tilewright
