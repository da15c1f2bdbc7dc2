// Appending to a cache: every new row in its place, nothing else touched, and what has no place is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tilewright/attention.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

Attention& attention() {
    static Attention opened = [] {
        AttentionOptions options;
        options.threads = 2;
        options.database.use_user = options.database.use_system = false;
        return *Attention::open(options);
    }();
    return opened;
}

// A cache of elements that each have a number of their own, before and after.
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
    // What the cache must become.
    std::vector<unsigned char> after(std::vector<unsigned char> cache, const std::vector<unsigned char>& from, int64_t columns) const {
        const int64_t heads = problem.heads_kv, block_rows = page_size ? page_size : problem.seq_kv;
        const size_t bytes = static_cast<size_t>(columns) * size_of(problem.dtype);
        for (int64_t s = 0; s < problem.batch; ++s)
            for (int64_t head = 0; head < heads; ++head)
                for (int64_t row = 0; row < (counts.empty() ? rows : counts[static_cast<size_t>(s)]); ++row) {
                    int64_t place = lengths[static_cast<size_t>(s)] + row, block = s;
                    if (page_size) block = table[static_cast<size_t>(s * table_stride + place / page_size)], place %= page_size;
                    std::memcpy(cache.data() + static_cast<size_t>((block * heads + head) * block_rows + place) * bytes,
                                from.data() + static_cast<size_t>((s * heads + head) * rows + row) * bytes, bytes);
                }
        return cache;
    }
};

TEST(Append, WritesNewRowsBehindTheLastAndNothingElse) {
    for (const char* text : {"decode:hkv2,hq2,sq1,skv100,d64,bf16", "decode:hkv3,hq3,sq1,skv100,d37,dv21,fp16", "decode:hkv1,sq1,skv100,d8,dv72,fp32"})
        for (int64_t page : {0, 16, 32})
            for (int64_t rows : {1, 40}) {
                AppendCall call(text, {0, 60, 15, 16, 59}, {}, rows, page);
                if (rows > 1) call.counts = {40, 0, 17, 16, 1};
                const std::vector<unsigned char> keys = call.after(call.key_cache, call.key, call.problem.head_dim), values = call.after(call.value_cache, call.value, call.problem.head_dim_v);
                Status status = attention().append(call.problem, call.tensors());
                ASSERT_TRUE(status.ok()) << status.message();
                EXPECT_EQ(call.key_cache, keys) << text << " page " << page << " rows " << rows;
                EXPECT_EQ(call.value_cache, values) << text << " page " << page << " rows " << rows;
                EXPECT_EQ(call.status, ~0u);
            }
}

TEST(Append, NamesTheSequenceThatHasNoPlaceAndWritesNothing) {
    auto message = [](AppendCall call) {
        const std::vector<unsigned char> keys = call.key_cache, values = call.value_cache;
        Status status = attention().append(call.problem, call.tensors());
        EXPECT_EQ(status.code(), StatusCode::invalid_argument);
        EXPECT_EQ(call.key_cache, keys);
        EXPECT_EQ(call.value_cache, values);
        return status.message();
    };
    const char* text = "decode:hkv2,hq2,sq1,skv100,d16,bf16";
    EXPECT_THAT(message(AppendCall(text, {3, 99, 100}, {}, 1, 0)), HasSubstr("sequence 2 has 100 keys and 1 new ones; the cache has place for 100"));
    EXPECT_THAT(message(AppendCall(text, {3, -1}, {}, 1, 0)), HasSubstr("sequence 1 has -1 keys"));
    EXPECT_THAT(message(AppendCall(text, {3, 4}, {1, 3}, 2, 0)), HasSubstr("sequence 1 has 4 keys and 3 new ones; neither may be negative, and there are 2 new rows"));
    AppendCall pages(text, {3, 15}, {}, 2, 16);
    pages.table[static_cast<size_t>(pages.table_stride) + 1] = 1000;
    EXPECT_THAT(message(pages), HasSubstr("sequence 1: its page 1 is 1000; the cache has pages 0 to"));
    pages.table_stride = 1, pages.table[1] = 2;
    EXPECT_THAT(message(pages), HasSubstr("sequence 1 has 15 keys and 2 new ones; the cache has place for 16"));
    AppendCall rows(text, {3}, {}, 101, 0);
    EXPECT_THAT(message(rows), HasSubstr("rows is 101"));
}

TEST(Append, WhatWasAppendedIsWhatDecodeSees) {
    // One key after another: the mean of the values so far.
    const Problem problem = *parse_problem("decode:hq1,hkv1,sq1,skv20,d4,fp32");
    std::vector<float> query(4, 0), key(4, 0), key_cache(80, NAN), value_cache(80, NAN), out(4);
    for (int32_t n = 0; n < 20; ++n) {
        std::vector<float> value(4, static_cast<float>(n));
        int32_t length = n;
        AppendTensors t;
        t.key = dense(static_cast<const void*>(key.data()), 1, 1, 4), t.value = dense(static_cast<const void*>(value.data()), 1, 1, 4);
        t.key_cache = dense(static_cast<void*>(key_cache.data()), 1, 20, 4), t.value_cache = dense(static_cast<void*>(value_cache.data()), 1, 20, 4);
        t.lengths = &length;
        ASSERT_TRUE(attention().append(problem, t).ok());
        ++length;
        DecodeTensors d;
        d.query = dense(static_cast<const void*>(query.data()), 1, 1, 4), d.out = dense(static_cast<void*>(out.data()), 1, 1, 4);
        d.key = dense(static_cast<const void*>(key_cache.data()), 1, 20, 4), d.value = dense(static_cast<const void*>(value_cache.data()), 1, 20, 4);
        d.lengths = &length, d.splits = 1;
        Status status = attention().decode(problem, d);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_FLOAT_EQ(out[0], static_cast<float>(n) / 2);
    }
}

}  // namespace
}  // namespace tilewright
