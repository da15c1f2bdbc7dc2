// Launches on a real NVIDIA device beside others: streams, threads, graphs, a caller's context; and what a launch costs the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "backends/nvidia/nvidia_kernel.h"
#include "kernels/arch/sm90_arguments.h"
#include "nvidia_graph.h"
#include "verify/check.h"
#include "verify/device_workload.h"
#include "verify/nvidia_build.h"

namespace tilewright {
namespace {

using test::Graph, test::GraphCalls, test::GraphExec;

const Config persistent{.block_q = 128, .block_kv = 64, .stages = 2, .workers = 2, .overlapped = 1, .persistent = 1};

class NvidiaLaunch : public testing::Test {
protected:
    void SetUp() override {
        if (!test::nvidia_arch()) GTEST_SKIP() << "no NVIDIA device";
        if (test::nvidia_arch()->family != Family::sm90) GTEST_SKIP() << "these configs are for sm_90a";
        auto device = nvidia_backend().open(0);
        ASSERT_TRUE(device.ok()) << device.status().message();
        device_ = *std::move(device);
        auto driver = nvidia::Driver::open("libcuda.so.1");
        auto library = SharedLibrary::open("libcuda.so.1");
        ASSERT_TRUE(driver.ok() && library.ok());
        driver_ = *std::move(driver);
        calls_.library = *std::move(library);
        ASSERT_TRUE(calls_.bind());
        ASSERT_TRUE(driver_->retain_primary(&context_, 0).ok());
    }
    void TearDown() override {
        if (!context_) return;
        EXPECT_TRUE(driver_->release_primary(0).ok());
    }
    // A workload on the device with the kernel for it and its right answer.
    struct Ready {
        PreparedCheck prepared;
        DeviceWorkload on_device;
        std::unique_ptr<Kernel> kernel;
    };
    Result<Ready> ready(const char* text, uint64_t seed) {
        CheckOptions options;
        options.workload.seed = seed;
        TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, parse_problem(text));
        TILEWRIGHT_ASSIGN_OR_RETURN(PreparedCheck prepared, prepare_check(problem, options));
        TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload on_device, DeviceWorkload::upload(*device_, prepared.workload));
        TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, test::build_and_load(*device_, test::spec_of(prepared.workload, persistent)));
        return Ready{std::move(prepared), std::move(on_device), std::move(kernel)};
    }
    nvidia::Stream new_stream() {
        nvidia::Stream stream = nullptr;
        EXPECT_TRUE(nvidia::in_context(*driver_, context_, [&] { return driver_->create_stream(&stream, nvidia::stream_nonblocking); }).ok());
        return stream;
    }
    void destroy(nvidia::Stream stream) {
        EXPECT_TRUE(nvidia::in_context(*driver_, context_, [&] { return driver_->destroy_stream(stream); }).ok());
    }
    static void expect_right(Ready& r) {
        auto trespass = r.on_device.download(r.prepared.workload);
        ASSERT_TRUE(trespass.ok()) << trespass.status().message();
        EXPECT_EQ(*trespass, "");
        CheckReport report = compare_outputs(r.prepared.workload, r.prepared.expected);
        EXPECT_TRUE(report.passed) << report.failure;
    }

    std::unique_ptr<Device> device_;
    std::unique_ptr<nvidia::Driver> driver_;
    GraphCalls calls_;
    nvidia::Context context_ = nullptr;
};

// More tiles than blocks, so that both streams deal out tiles while the other does.
TEST_F(NvidiaLaunch, TwoThreadsOnTwoStreamsGetRightResults) {
    auto first = ready("forward:b2,hq32,sq1500,skv700,d64,causal", 1), second = ready("forward:b3,hq16,sq1300,skv900,d64", 2);
    ASSERT_TRUE(first.ok() && second.ok());
    std::vector<std::thread> threads;
    for (Ready* r : {&*first, &*second})
        threads.emplace_back([&, r] {
            nvidia::Stream stream = new_stream();
            for (int i = 0; i < 50; ++i) EXPECT_TRUE(device_->launch(*r->kernel, forward_part(r->on_device.parameters()), stream).ok());
            EXPECT_TRUE(nvidia::in_context(*driver_, context_, [&] { return driver_->synchronize_stream(stream); }).ok());
            destroy(stream);
        });
    for (auto& thread : threads) thread.join();
    expect_right(*first), expect_right(*second);
}

// One kernel, one workload, many streams: results are the same bits, so every launch must have written all of them.
TEST_F(NvidiaLaunch, OneKernelRunsOnManyStreamsAtOnce) {
    auto r = ready("forward:b2,hq32,sq600,skv600,d64,causal", 3);
    ASSERT_TRUE(r.ok()) << r.status().message();
    std::vector<nvidia::Stream> streams;
    for (int i = 0; i < 8; ++i) streams.push_back(new_stream());
    for (int i = 0; i < 80; ++i) ASSERT_TRUE(device_->launch(*r->kernel, forward_part(r->on_device.parameters()), streams[i % 8]).ok());
    ASSERT_TRUE(device_->synchronize().ok());
    expect_right(*r);
    for (nvidia::Stream stream : streams) destroy(stream);
}

TEST_F(NvidiaLaunch, ACapturedGraphReplaysRightResults) {
    auto first = ready("forward:b2,hq32,sq600,skv600,d64", 4), second = ready("forward:b2,hq32,sq600,skv600,d64,causal", 5);
    ASSERT_TRUE(first.ok() && second.ok());
    nvidia::Stream stream = new_stream(), other = new_stream();
    Status done = nvidia::in_context(*driver_, context_, [&]() -> Status {
        Graph graph = nullptr;
        GraphExec exec = nullptr;
        EXPECT_EQ(calls_.begin(stream, 0), 0);  // the strictest mode
        TILEWRIGHT_RETURN_IF_ERROR(device_->launch(*first->kernel, forward_part(first->on_device.parameters()), stream));
        TILEWRIGHT_RETURN_IF_ERROR(device_->launch(*second->kernel, forward_part(second->on_device.parameters()), stream));
        EXPECT_EQ(calls_.end(stream, &graph), 0);
        EXPECT_EQ(calls_.instantiate(&exec, graph, 0), 0);
        for (int i = 0; i < 3; ++i) {
            TILEWRIGHT_RETURN_IF_ERROR(first->on_device.reset_outputs(first->prepared.workload));
            TILEWRIGHT_RETURN_IF_ERROR(second->on_device.reset_outputs(second->prepared.workload));
            for (int j = 0; j < 10; ++j) EXPECT_EQ(calls_.launch(exec, stream), 0);
            // Launches outside the graph run beside it.
            TILEWRIGHT_RETURN_IF_ERROR(device_->launch(*first->kernel, forward_part(first->on_device.parameters()), other));
            TILEWRIGHT_RETURN_IF_ERROR(driver_->synchronize());
            expect_right(*first), expect_right(*second);
        }
        EXPECT_EQ(calls_.destroy_exec(exec), 0);
        EXPECT_EQ(calls_.destroy(graph), 0);
        return {};
    });
    EXPECT_TRUE(done.ok()) << done.message();
    destroy(stream), destroy(other);
}

TEST_F(NvidiaLaunch, ACallersOwnContextStaysCurrent) {
    nvidia::Context own = nullptr, current = nullptr;
    ASSERT_EQ(calls_.create_context(&own, 0, 0), 0);
    {
        auto r = ready("forward:b1,hq4,sq200,skv300,d64", 6);
        ASSERT_TRUE(r.ok()) << r.status().message();
        EXPECT_TRUE(device_->launch(*r->kernel, forward_part(r->on_device.parameters()), nullptr).ok());
        EXPECT_TRUE(device_->synchronize().ok());
        expect_right(*r);
    }
    EXPECT_TRUE(driver_->current_context(&current).ok());
    EXPECT_EQ(current, own);
    EXPECT_EQ(calls_.destroy_context(own), 0);
}

TEST_F(NvidiaLaunch, ACachedLaunchCostsTheHostLessThanFiveMicroseconds) {
    auto r = ready("forward:b1,hq1,sq64,skv64,d64", 7);
    ASSERT_TRUE(r.ok()) << r.status().message();
    auto median_us = [&](auto&& launch) {
        std::vector<double> costs;
        Status done = nvidia::in_context(*driver_, context_, [&]() -> Status {
            for (int repeat = 0; repeat < 20; ++repeat) {
                TILEWRIGHT_RETURN_IF_ERROR(device_->synchronize());
                auto start = std::chrono::steady_clock::now();
                for (int i = 0; i < 100; ++i) TILEWRIGHT_RETURN_IF_ERROR(launch());
                costs.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / 100);
            }
            return device_->synchronize();
        });
        EXPECT_TRUE(done.ok()) << done.message();
        std::nth_element(costs.begin(), costs.begin() + 10, costs.end());
        return costs[10];
    };
    auto& loaded = static_cast<nvidia::NvidiaKernel&>(*r->kernel);
    kernel::Sm90Arguments nothing_to_do{};
    void* argument = &nothing_to_do;
    double bare = median_us([&] { return driver_->launch(loaded.function, 1u, 1u, 1u, loaded.threads, 1u, 1u, loaded.shared_bytes, nvidia::Stream(), &argument, (void**)nullptr); });
    double on_default = median_us([&] { return device_->launch(*r->kernel, forward_part(r->on_device.parameters()), nullptr); });
    nvidia::Stream stream = new_stream();
    double on_stream = median_us([&] { return device_->launch(*r->kernel, forward_part(r->on_device.parameters()), stream); });
    destroy(stream);
    std::cout << "microseconds of host time: " << on_default << " on the default stream, " << on_stream << " on another, of which the driver's launch takes " << bare << "\n";
    // On a host where the driver's own launch takes nearly as much, one more microsecond is ours.
    const double most = std::max(5.0, bare + 1);
    EXPECT_LT(on_default, most);
    EXPECT_LT(on_stream, most);
}

}  // namespace
}  // namespace tilewright
