// Appending on a GPU: the same calls as on the CPU, and what has no place, which only the device can see.
#include "runtime/append_call.h"
#include "runtime/opened.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

// Runs the call in the device's memory and brings caches and status back.
void run(AppendCall& call) {
    AppendTensors t = call.tensors();
    std::vector<void*> memory;
    auto copy = [&](const void* from, size_t bytes) {
        Result<void*> address = gpu()->allocate(static_cast<int64_t>(bytes));
        EXPECT_TRUE(address.ok() && gpu()->copy_to_device(*address, from, static_cast<int64_t>(bytes)).ok());
        memory.push_back(*address);
        return *address;
    };
    t.key.data = copy(call.key.data(), call.key.size()), t.value.data = copy(call.value.data(), call.value.size());
    t.key_cache.data = copy(call.key_cache.data(), call.key_cache.size()), t.value_cache.data = copy(call.value_cache.data(), call.value_cache.size());
    t.lengths = static_cast<const int32_t*>(copy(call.lengths.data(), call.lengths.size() * 4));
    if (t.counts) t.counts = static_cast<const int32_t*>(copy(call.counts.data(), call.counts.size() * 4));
    if (t.block_table) t.block_table = static_cast<const int32_t*>(copy(call.table.data(), call.table.size() * 4));
    t.status = static_cast<uint32_t*>(copy(&call.status, 4));
    Status status = gpu()->append(call.problem, t);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(gpu()->copy_to_host(call.key_cache.data(), t.key_cache.data, static_cast<int64_t>(call.key_cache.size())).ok());
    ASSERT_TRUE(gpu()->copy_to_host(call.value_cache.data(), t.value_cache.data, static_cast<int64_t>(call.value_cache.size())).ok());
    ASSERT_TRUE(gpu()->copy_to_host(&call.status, t.status, 4).ok());
    for (void* address : memory) EXPECT_TRUE(gpu()->free(address).ok());
}

TEST(AppendOnDevice, WritesNewRowsBehindTheLastAndNothingElse) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    for (const char* text : {"decode:hkv2,hq2,sq1,skv100,d64,bf16", "decode:hkv3,hq3,sq1,skv100,d37,dv21,fp16", "decode:hkv1,sq1,skv100,d8,dv72,fp32"})
        for (int64_t page : {0, 16, 32})
            for (int64_t rows : {1, 40}) {
                AppendCall call(text, {0, 60, 15, 16, 59}, {}, rows, page);
                if (rows > 1) call.counts = {40, 0, 17, 16, 1};
                const std::vector<unsigned char> keys = call.keys_after(), values = call.values_after();
                run(call);
                EXPECT_EQ(call.key_cache, keys) << text << " page " << page << " rows " << rows;
                EXPECT_EQ(call.value_cache, values) << text << " page " << page << " rows " << rows;
                EXPECT_EQ(call.status, ~0u);
            }
}

TEST(AppendOnDevice, SequencesWithoutPlaceAreLeftAloneAndTheFirstIsNamed) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    for (int64_t page : {0, 16}) {
        AppendCall call("decode:hkv2,hq2,sq1,skv100,d64,bf16", {0, 60, 61, -1, 100, 3, 2147483647}, {40, 40, 40, 5, 1, 41, 7}, 40, page);
        const std::vector<unsigned char> keys = call.keys_after(), values = call.values_after();
        run(call);
        EXPECT_EQ(call.key_cache, keys) << "page " << page;
        EXPECT_EQ(call.value_cache, values) << "page " << page;
        EXPECT_EQ(call.status, 2u);
    }
}

TEST(AppendOnDevice, PagesThatTheCacheDoesNotHaveAreNotWritten) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    AppendCall call("decode:hkv2,hq2,sq1,skv100,d64,bf16", {0, 0, 0}, {}, 16, 16);
    call.counts = {16, 0, 16};
    const std::vector<unsigned char> keys = call.keys_after(), values = call.values_after();
    call.counts = {16, 16, 16};
    call.table[static_cast<size_t>(call.table_stride)] = static_cast<int32_t>(call.pages);
    run(call);
    EXPECT_EQ(call.key_cache, keys);
    EXPECT_EQ(call.value_cache, values);
    EXPECT_EQ(call.status, 1u);
}

}  // namespace
}  // namespace tilewright
