// Loading and launching over a stand-in for the driver: grids, tensor maps, tile counters, refusals.
#include <gmock/gmock.h>

#include <cstring>
#include <thread>

#include "backends/nvidia/tile_counters.h"
#include "backends/nvidia_over_fake.h"

namespace tilewright::nvidia {
namespace {

using testing::HasSubstr;

class NvidiaLaunchOverFake : public NvidiaOverFake {};

TEST_F(NvidiaLaunchOverFake, CodeForAnotherDeviceIsRefused) {
    if (auto info = nvrtc_info(); !info.ok()) GTEST_SKIP() << info.status().message();
    open(1);
    auto kernel = device_->load(empty_kernel(sizeof(kernel::Sm90Arguments), "sm_90a"), {}, {"", "attention_forward", 128, 4096});
    EXPECT_THAT(kernel.status().message(), HasSubstr("sm_90a does not run on a device of compute capability 8.0"));
    open(0);
    kernel = device_->load(empty_kernel(sizeof(kernel::ForwardParameters), "sm_80"), {}, {"", "attention_forward", 128, 4096});
    EXPECT_EQ(kernel.status().code(), StatusCode::unsupported);
}

TEST_F(NvidiaLaunchOverFake, AKernelThatDoesNotMatchTheHostIsRefused) {
    if (auto info = nvrtc_info(); !info.ok()) GTEST_SKIP() << info.status().message();
    open();
    auto wrong_size = device_->load(empty_kernel(40, "sm_90a"), {}, {"", "attention_forward", 128, 4096});
    EXPECT_THAT(wrong_size.status().message(), HasSubstr("takes 40 bytes"));
    CodeObject object = empty_kernel(sizeof(kernel::ForwardParameters), "sm_90a");
    EXPECT_EQ(device_->load(object, {}, {"", "attention_backward", 128, 4096}).status().code(), StatusCode::not_found);
    EXPECT_THAT(device_->load(object, {}, {"", "attention_forward", 128, 300000}).status().message(), HasSubstr("300000 bytes"));
    EXPECT_THAT(device_->load(object, {}, {"", "attention_forward", 2048, 0}).status().message(), HasSubstr("does not fit"));
}

TEST_F(NvidiaLaunchOverFake, OneBlockATileOrAsManyAsFit) {
    load(false, {.block_q = 64});
    ASSERT_TRUE(device_->launch(*kernel_, parameters(), nullptr).ok());
    EXPECT_EQ(fake_.last_launch().grid, 20u);  // 4 heads, 5 blocks of rows
    EXPECT_EQ(fake_.last_launch().threads, 128u);
    EXPECT_EQ(fake_.last_launch().shared_bytes, 4096u);
    EXPECT_EQ(launched().tiles, 20);
    load(false, {.block_q = 1, .persistent = 1});
    ASSERT_TRUE(device_->launch(*kernel_, parameters(), nullptr).ok());
    EXPECT_EQ(fake_.last_launch().grid, 264u);  // 132 multiprocessors, 2 blocks each
    EXPECT_EQ(*device_->resident_blocks(*kernel_), 2);
}

TEST_F(NvidiaLaunchOverFake, TensorMapsAreMadeOnceForATensor) {
    load(true);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(device_->launch(*kernel_, parameters(), nullptr).ok());
    EXPECT_EQ(fake_.calls("cuTensorMapEncodeTiled"), 3);
    fake_cuda::Launch launch = fake_.last_launch();
    const void* of_key = nullptr;
    std::memcpy(&of_key, launch.parameters + offsetof(kernel::Sm90Arguments, key), sizeof of_key);
    EXPECT_EQ(of_key, key_.bytes);
    kernel::ForwardParameters longer = parameters();
    longer.seq_kv = 301;
    ASSERT_TRUE(device_->launch(*kernel_, longer, nullptr).ok());
    EXPECT_EQ(fake_.calls("cuTensorMapEncodeTiled"), 5);
}

TEST_F(NvidiaLaunchOverFake, NoKeysAndNoQueriesAreLegal) {
    load(true);
    kernel::ForwardParameters p = parameters();
    p.key = p.value = nullptr, p.seq_kv = 0;
    EXPECT_TRUE(device_->launch(*kernel_, p, nullptr).ok());
    EXPECT_EQ(fake_.calls("cuLaunchKernel"), 1);
    p.seq_q = 0;
    EXPECT_TRUE(device_->launch(*kernel_, p, nullptr).ok());
    EXPECT_EQ(fake_.calls("cuLaunchKernel"), 1);
}

TEST_F(NvidiaLaunchOverFake, MisalignedTensorsAreNamed) {
    load(true);
    kernel::ForwardParameters p = parameters();
    p.key = key_.bytes + 2;
    EXPECT_THAT(device_->launch(*kernel_, p, nullptr).message(), HasSubstr("key: the address or a stride is no multiple of 16"));
    p = parameters();
    p.out_strides.row = 65;
    EXPECT_THAT(device_->launch(*kernel_, p, nullptr).message(), HasSubstr("out: "));
    p = parameters();
    p.value_strides.head = -64;
    EXPECT_THAT(device_->launch(*kernel_, p, nullptr).message(), HasSubstr("value: a stride is -128 bytes"));
}

TEST_F(NvidiaLaunchOverFake, EveryStreamHasItsOwnTileCounter) {
    load(false, {.persistent = 1});
    auto counter = [&](void* stream) {
        EXPECT_TRUE(device_->launch(*kernel_, parameters(), stream).ok());
        return launched().tiles_dealt;
    };
    void *a = fake_.new_stream(), *b = fake_.new_stream();
    unsigned *default_counter = counter(nullptr), *of_a = counter(a), *of_b = counter(b);
    EXPECT_NE(of_a, of_b);
    EXPECT_NE(of_a, default_counter);
    EXPECT_EQ(counter(a), of_a);
    EXPECT_EQ(fake_.last_launch().stream, a);
    EXPECT_EQ(*of_a, 0u);
    fake_.delete_stream(a);  // its kernels may still run when a new stream gets its address
    void* again = fake_.new_stream();
    ASSERT_EQ(again, a);
    EXPECT_NE(counter(again), of_a);
    fake_.delete_stream(again), fake_.delete_stream(b);
}

TEST_F(NvidiaLaunchOverFake, CapturedLaunchesShareNoCounterAndAllocateNothing) {
    load(true, {.persistent = 1});
    void* stream = fake_.new_stream();
    ASSERT_TRUE(device_->launch(*kernel_, parameters(), stream).ok());
    unsigned* eager = launched().tiles_dealt;
    int allocations = fake_.calls("cuMemAlloc_v2");
    fake_.set_capturing(stream, true);
    ASSERT_TRUE(device_->launch(*kernel_, parameters(), stream).ok());
    unsigned* first = launched().tiles_dealt;
    ASSERT_TRUE(device_->launch(*kernel_, parameters(), stream).ok());
    EXPECT_NE(first, launched().tiles_dealt);
    EXPECT_NE(first, eager);
    EXPECT_EQ(fake_.calls("cuMemAlloc_v2"), allocations);
    // Even when the counters run out: the thread is in relaxed mode for the allocation, and only for it.
    for (int i = 0; i < TileCounters::counters_per_chunk; ++i) ASSERT_TRUE(device_->launch(*kernel_, parameters(), stream).ok());
    EXPECT_EQ(fake_.calls("cuMemAlloc_v2"), allocations + 1);
    EXPECT_FALSE(device_->allocate(16).ok());
    fake_.set_capturing(stream, false);
    fake_.delete_stream(stream);
}

TEST_F(NvidiaLaunchOverFake, ThreadsLaunchAtTheSameTime) {
    load(true);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) EXPECT_TRUE(device_->launch(*kernel_, parameters(), nullptr).ok());
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(fake_.calls("cuLaunchKernel"), 800);
}

}  // namespace
}  // namespace tilewright::nvidia
