// The NVIDIA device over a stand-in for the driver: devices, memory, contexts; what it says and leaves behind when calls fail.
#include <gmock/gmock.h>

#include <cstring>

#include "backends/nvidia_over_fake.h"

namespace tilewright::nvidia {
namespace {

using testing::HasSubstr;

class NvidiaDriver : public NvidiaOverFake {};

TEST_F(NvidiaDriver, AnAbsentLibraryIsOneClearSentence) {
    auto devices = make_backend("libcuda-that-is-not-there.so")->devices();
    ASSERT_FALSE(devices.ok());
    EXPECT_EQ(devices.status().code(), StatusCode::unavailable);
    EXPECT_THAT(devices.status().message(), HasSubstr("NVIDIA's driver is not installed"));
    EXPECT_THAT(devices.status().message(), HasSubstr("libcuda-that-is-not-there.so"));
    EXPECT_THAT(devices.status().message(), Not(HasSubstr("\n")));
}

TEST_F(NvidiaDriver, DevicesReportTheirOwnLimitsInTheTablesRow) {
    auto devices = backend_->devices();
    ASSERT_TRUE(devices.ok()) << devices.status().message();
    ASSERT_EQ(devices->size(), 2u);
    const DeviceInfo &hopper = (*devices)[0], &ampere = (*devices)[1];
    EXPECT_EQ(hopper.id, "nvidia:0");
    EXPECT_EQ(hopper.arch.name, "sm_90a");
    EXPECT_EQ(hopper.arch.family, Family::sm90);
    EXPECT_EQ(hopper.arch.shared_bytes_per_block, 227 * 1024);
    EXPECT_EQ(hopper.arch.max_warps_per_unit, 64);
    EXPECT_EQ(ampere.name, "Fake A30");
    EXPECT_EQ(ampere.arch.name, "sm_80");
    EXPECT_EQ(ampere.arch.units, 54);
    EXPECT_NEAR(ampere.arch.matrix_tflops_16bit, find_arch("sm_80")->matrix_tflops_16bit / 2, 1e-9);
    EXPECT_NEAR(ampere.arch.memory_gbps, 2 * 1593e6 * 640 * 1e-9, 1e-9);
}

TEST_F(NvidiaDriver, ErrorsCarryTheDriversNameAndText) {
    open();
    fake_.fail("cuMemAlloc_v2", 0, 2);
    EXPECT_EQ(device_->allocate(64).status().message(), "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
    fake_.fail("cuMemAlloc_v2", 0, 98765);
    EXPECT_EQ(device_->allocate(64).status().message(), "cuMemAlloc: CUDA error 98765");
}

TEST_F(NvidiaDriver, MemoryGoesThereAndBack) {
    open();
    auto memory = device_->allocate(16);
    ASSERT_TRUE(memory.ok());
    char sent[16] = "fifteen letters", received[16] = {};
    EXPECT_TRUE(device_->copy_to_device(*memory, sent, 16).ok());
    EXPECT_TRUE(device_->fill(*memory, 'x', 2).ok());
    EXPECT_TRUE(device_->copy_to_host(received, *memory, 16).ok());
    EXPECT_STREQ(received, "xxfteen letters");
    EXPECT_TRUE(device_->free(*memory).ok());
    EXPECT_FALSE(device_->free(*memory).ok());
    EXPECT_EQ(device_->allocate(-1).status().code(), StatusCode::invalid_argument);
    auto none = device_->allocate(0);
    ASSERT_TRUE(none.ok()) << none.status().message();
    EXPECT_TRUE(device_->free(*none).ok());
}

TEST_F(NvidiaDriver, TheCallersContextStaysCurrent) {
    void* own = fake_.new_context();
    open();
    EXPECT_EQ(fake_.current_context(), own);
    auto memory = device_->allocate(16);
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(fake_.current_context(), own);
    EXPECT_TRUE(device_->free(*memory).ok());
    EXPECT_FALSE(device_->free(*memory).ok());  // after a failure too
    EXPECT_EQ(fake_.current_context(), own);
    device_.reset();
    EXPECT_EQ(fake_.current_context(), own);
    fake_.drop_context();
}

TEST_F(NvidiaDriver, NothingIsLeftAlive) {
    load(true);
    EXPECT_TRUE(device_->launch(*kernel_, parameters(), nullptr).ok());
    EXPECT_TRUE(device_->time_us(3, nullptr, [&] { return device_->launch(*kernel_, parameters(), nullptr); }).ok());
    EXPECT_GT(fake_.alive(), 0);
    kernel_.reset(), device_.reset();
    EXPECT_EQ(fake_.alive(), 0);
}

// Every call of opening, loading, launching and timing fails once: an error comes back and nothing leaks.
TEST_F(NvidiaDriver, EveryFailureIsReportedAndLeaksNothing) {
    if (auto info = nvrtc_info(); !info.ok()) GTEST_SKIP() << info.status().message();
    CodeObject object = empty_kernel(sizeof(kernel::Sm90Arguments), "sm_90a");
    fake_.set_parameter_bytes(sizeof(kernel::Sm90Arguments));
    KernelSpec spec;
    spec.config.persistent = 1;
    void* stream = fake_.new_stream();
    auto work = [&]() -> Status {
        TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, backend_->open(0));
        TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> loaded, device->load(object, spec, {"", "attention_forward", 128, 4096}));
        TILEWRIGHT_ASSIGN_OR_RETURN(void* memory, device->allocate(64));
        char bytes[64] = {};
        Status used = device->copy_to_device(memory, bytes, 64);
        if (used.ok()) used = device->copy_to_host(bytes, memory, 64);
        if (used.ok()) used = device->fill(memory, 0, 64);
        if (used.ok()) used = device->time_us(2, nullptr, [&] { return device->launch(*loaded, parameters(), stream); }).status();
        if (used.ok()) used = device->synchronize();
        Status freed = device->free(memory);
        return used.ok() ? freed : used;
    };
    ASSERT_TRUE(work().ok()) << work().message();
    for (const char* function :
         {"cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxSynchronize",
          "cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemsetD8Async", "cuStreamCreate", "cuStreamSynchronize", "cuStreamGetId", "cuStreamIsCapturing", "cuEventCreate",
          "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime", "cuModuleLoadData", "cuModuleGetFunction", "cuFuncSetAttribute", "cuOccupancyMaxActiveBlocksPerMultiprocessor",
          "cuLaunchKernel", "cuTensorMapEncodeTiled", "cuThreadExchangeStreamCaptureMode"}) {
        fake_.reset();
        ASSERT_TRUE(work().ok());
        int calls = fake_.calls(function);
        ASSERT_GT(calls, 0) << function;
        // Where a context cannot be made current at the end, what lives in it cannot be given back.
        bool needed_to_give_back = function == std::string("cuCtxGetCurrent") || function == std::string("cuCtxPushCurrent_v2");
        for (int after : {0, needed_to_give_back ? 0 : calls - 1}) {
            SCOPED_TRACE(std::string(function) + " fails after " + std::to_string(after));
            fake_.reset();
            fake_.fail(function, after, 1);
            Status status = work();
            EXPECT_FALSE(status.ok());
            EXPECT_THAT(status.message(), HasSubstr("CUDA_ERROR_INVALID_VALUE (invalid argument)"));
            EXPECT_EQ(fake_.alive(), 1);  // our stream
        }
    }
    fake_.delete_stream(stream);
}

TEST_F(NvidiaDriver, TimesEachLaunchAndRunsWhatComesBefore) {
    open();
    int before = 0, launches = 0;
    auto times = device_->time_us(3, [&] { return ++before, Status(); }, [&] { return ++launches, Status(); });
    ASSERT_TRUE(times.ok());
    EXPECT_EQ(*times, std::vector<double>(3, 250.0));
    EXPECT_EQ(before, 3);
    EXPECT_EQ(launches, 3);
    auto failed = device_->time_us(3, nullptr, [] { return invalid_argument("as wished"); });
    EXPECT_EQ(failed.status().message(), "as wished");
}

}  // namespace
}  // namespace tilewright::nvidia
