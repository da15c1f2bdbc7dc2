// Two NVIDIA devices at once, from one thread that turns from one to the other and from several: every element against the float64 reference. Skipped where
// there are not two, or they are not of sm_90a.
#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "backends/family_text.h"
#include "verify/check_backward.h"
#include "verify/device_workload.h"

namespace tilewright {
namespace {

const char* const problems[] = {"forward:b2,hq4,hkv2,sq300,skv333,d128,bf16,causal", "backward:b2,hq4,hkv2,sq200,skv333,d64,bf16,causal", "decode:b3,hq8,hkv2,sq1,skv700,d128,bf16",
                                "forward:b1,hq4,sq300,skv200,d64,fp16",               "backward:b1,hq2,hkv1,sq150,skv190,d37,fp32",      "backward:b1,hq4,sq300,skv300,d256,bf16"};

class NvidiaTwoDevices : public testing::Test {
protected:
    struct One {
        std::unique_ptr<Device> device;
        std::unique_ptr<CompiledKernels> kernels;
    };
    // A call on its device, with the right answer.
    struct Call {
        Device* device;
        PreparedCheck prepared;
        ReadyOperation operation;
        DeviceWorkload on_device;
        DeviceWorkload::Bound bound;

        Status run(int times) {
            for (int i = 0; i < times; ++i) TILEWRIGHT_RETURN_IF_ERROR(launch(*device, operation.kernels, bound.parameters, nullptr));
            return {};
        }
        Status reset() { return on_device.reset_outputs(prepared.workload); }
        void expect_right() {
            ASSERT_TRUE(device->synchronize().ok());
            Result<std::string> stray = on_device.download(prepared.workload);
            ASSERT_TRUE(stray.ok()) << stray.status().message();
            EXPECT_EQ(*stray, "");
            CheckReport report = compare_outputs(prepared.workload, prepared.expected);
            EXPECT_TRUE(report.passed) << device->info().id << " " << to_text(prepared.workload.problem) << ": " << report.failure;
        }
    };

    void SetUp() override {
        for (const char* id : {"nvidia:0", "nvidia:1"}) {
            Result<std::unique_ptr<Device>> device = open_device(id);
            if (!device.ok()) GTEST_SKIP() << device.status().message();
            if ((*device)->info().arch.family != Family::sm90) GTEST_SKIP() << id << " is not of sm_90a";
            devices_.push_back({*std::move(device), nullptr});
            devices_.back().kernels = std::make_unique<CompiledKernels>(**find_backend("nvidia"), *devices_.back().device);
        }
    }
    // Other numbers for every seed, so that what another call has computed is wrong here.
    Result<Call> call(size_t on, const char* text, uint64_t seed) {
        One& one = devices_[on];
        const Arch& arch = one.device->info().arch;
        CheckOptions options;
        options.workload.seed = seed, options.max_rows = 0;
        TILEWRIGHT_ASSIGN_OR_RETURN(const Problem problem, parse_problem(text));
        TILEWRIGHT_ASSIGN_OR_RETURN(PreparedCheck prepared, prepare_check(problem, options));
        Config config{.block_q = 128, .block_kv = 64, .stages = 2, .workers = 2, .overlapped = 1, .persistent = 1};
        if (problem.operation == Operation::decode) config = {.block_q = 16, .block_kv = 64, .stages = 2, .workers = 2, .packs_heads = 1};
        if (problem.operation == Operation::backward) config = default_backward_config(problem, arch, traits_of(prepared.workload).aligned);
        TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation operation, supply(*one.kernels, arch, problem, config, traits_of(prepared.workload)));
        TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload on_device, DeviceWorkload::upload(*one.device, prepared.workload));
        TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload::Bound bound, on_device.bind(operation.plan));
        return Call{one.device.get(), std::move(prepared), std::move(operation), std::move(on_device), std::move(bound)};
    }
    std::deque<One> devices_;
};

TEST_F(NvidiaTwoDevices, OneThreadTurnsFromOneToTheOther) {
    for (const char* text : problems) {
        Result<Call> first = call(0, text, 1), second = call(1, text, 2);
        ASSERT_TRUE(first.ok() && second.ok()) << text << ": " << first.status().message() << second.status().message();
        for (int i = 0; i < 10; ++i) {
            if (i == 5) {
                ASSERT_TRUE(first->reset().ok() && second->reset().ok());
            }
            ASSERT_TRUE(first->run(1).ok() && second->run(1).ok());
        }
        second->expect_right(), first->expect_right();
    }
}

TEST_F(NvidiaTwoDevices, TwoThreadsHaveOneEach) {
    std::vector<std::thread> threads;
    for (size_t on : {0, 1})
        threads.emplace_back([&, on] {
            for (const char* text : problems) {
                Result<Call> mine = call(on, text, 3 + on);
                ASSERT_TRUE(mine.ok()) << text << ": " << mine.status().message();
                ASSERT_TRUE(mine->run(20).ok());
                mine->expect_right();
            }
        });
    for (std::thread& thread : threads) thread.join();
}

TEST_F(NvidiaTwoDevices, FourThreadsHaveBothEach) {
    std::vector<std::thread> threads;
    for (uint64_t n = 0; n < 4; ++n)
        threads.emplace_back([&, n] {
            for (const char* text : problems) {
                Result<Call> one = call(n % 2, text, 5 + 2 * n), other = call(1 - n % 2, text, 6 + 2 * n);
                ASSERT_TRUE(one.ok() && other.ok()) << text << ": " << one.status().message() << other.status().message();
                for (int i = 0; i < 5; ++i) ASSERT_TRUE(one->run(2).ok() && other->run(2).ok());
                one->expect_right(), other->expect_right();
            }
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tilewright
