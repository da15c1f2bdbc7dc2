// Appending to a cache: every new row in its place, nothing else touched, and what has no place is named.
#include "runtime/append_call.h"
#include "runtime/opened.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/c_call.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

TEST(Append, WritesNewRowsBehindTheLastAndNothingElse) {
    for (const char* text : {"decode:hkv2,hq2,sq1,skv100,d64,bf16", "decode:hkv3,hq3,sq1,skv100,d37,dv21,fp16", "decode:hkv1,sq1,skv100,d8,dv72,fp32"})
        for (int64_t page : {0, 16, 32})
            for (int64_t rows : {1, 40}) {
                AppendCall call(text, {0, 60, 15, 16, 59}, {}, rows, page);
                if (rows > 1) call.counts = {40, 0, 17, 16, 1};
                const std::vector<unsigned char> keys = call.keys_after(), values = call.values_after();
                Status status = cpu().append(call.problem, call.tensors());
                ASSERT_TRUE(status.ok()) << status.message();
                EXPECT_EQ(call.key_cache, keys) << text << " page " << page << " rows " << rows;
                EXPECT_EQ(call.value_cache, values) << text << " page " << page << " rows " << rows;
                EXPECT_EQ(call.status, ~0u);
            }
}

TEST(Append, NamesTheSequenceThatHasNoPlaceAndWritesNothing) {
    auto message = [](AppendCall call) {
        const std::vector<unsigned char> keys = call.key_cache, values = call.value_cache;
        Status status = cpu().append(call.problem, call.tensors());
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

TEST(Append, IsTheSameFromC) {
    AppendCall call("decode:hkv2,hq2,sq1,skv100,d16,fp32", {0, 60, 99}, {}, 1, 16);
    const std::vector<unsigned char> keys = call.keys_after(), values = call.values_after();
    tilewright_context* context = nullptr;
    ASSERT_EQ(tilewright_open(nullptr, &context), TILEWRIGHT_OK) << tilewright_last_error();
    tilewright_problem problem = TILEWRIGHT_INIT_PROBLEM;
    ASSERT_EQ(tilewright_parse_problem(to_text(call.problem).c_str(), &problem), TILEWRIGHT_OK);
    const AppendTensors t = call.tensors();
    tilewright_append_tensors tensors = TILEWRIGHT_INIT_APPEND_TENSORS;
    tensors.key = c_tensor(t.key), tensors.value = c_tensor(t.value), tensors.key_cache = c_tensor(t.key_cache), tensors.value_cache = c_tensor(t.value_cache);
    tensors.rows = t.rows, tensors.lengths = t.lengths, tensors.block_table = t.block_table, tensors.table_stride = t.table_stride;
    tensors.page_size = t.page_size, tensors.pages = t.pages, tensors.status = t.status;
    EXPECT_EQ(tilewright_append(context, &problem, &tensors, nullptr), TILEWRIGHT_OK) << tilewright_last_error();
    EXPECT_EQ(call.key_cache, keys);
    EXPECT_EQ(call.value_cache, values);
    call.lengths[1] = 100;
    EXPECT_EQ(tilewright_append(context, &problem, &tensors, nullptr), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_THAT(tilewright_last_error(), HasSubstr("sequence 1 has 100 keys"));
    EXPECT_EQ(tilewright_append(context, &problem, nullptr, nullptr), TILEWRIGHT_INVALID_ARGUMENT);
    tilewright_close(context);
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
        ASSERT_TRUE(cpu().append(problem, t).ok());
        ++length;
        DecodeTensors d;
        d.query = dense(static_cast<const void*>(query.data()), 1, 1, 4), d.out = dense(static_cast<void*>(out.data()), 1, 1, 4);
        d.key = dense(static_cast<const void*>(key_cache.data()), 1, 20, 4), d.value = dense(static_cast<const void*>(value_cache.data()), 1, 20, 4);
        d.lengths = &length, d.splits = 1;
        Status status = cpu().decode(problem, d);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_FLOAT_EQ(out[0], static_cast<float>(n) / 2);
    }
}

}  // namespace
}  // namespace tilewright
