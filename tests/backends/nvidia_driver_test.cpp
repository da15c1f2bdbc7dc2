// The NVIDIA device's host side over a stand-in for the driver: what it calls, leaves behind and says when calls fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "backends/nvidia/nvidia_backend.h"
#include "backends/nvidia/nvrtc.h"
#include "backends/nvidia/tile_counters.h"
#include "fake_cuda/fake_cuda.h"
#include "kernels/arch/sm90_arguments.h"

namespace tilewright::nvidia {
namespace {

using testing::HasSubstr;
using testing::Not;

// A kernel that takes one parameter of `bytes` and does nothing.
CodeObject empty_kernel(size_t bytes, const char* arch) {
    std::string n = std::to_string(bytes);
    auto object = nvrtc_compile("struct P { char bytes[" + n + "]; };\nextern \"C\" __global__ void attention_forward(const __grid_constant__ P p) {}", arch);
    EXPECT_TRUE(object.ok()) << object.status().message();
    return object.ok() ? *object : CodeObject();
}

struct Aligned {
    alignas(256) char bytes[256];
};

class NvidiaDriver : public testing::Test {
protected:
    void SetUp() override {
        auto library = SharedLibrary::open(TILEWRIGHT_FAKE_CUDA);
        ASSERT_TRUE(library.ok()) << library.status().message();
        library_.emplace(*std::move(library));
        fake_cuda::Controls (*controls)() = nullptr;
        ASSERT_TRUE(library_->bind("fake_cuda_controls", controls).ok());
        fake_ = controls();
        fake_.reset();
        backend_ = make_backend(TILEWRIGHT_FAKE_CUDA);
    }
    void open(int index = 0) {
        auto device = backend_->open(index);
        ASSERT_TRUE(device.ok()) << device.status().message();
        device_ = *std::move(device);
    }
    // A kernel over tensor maps on device 0, or over the parameters alone.
    void load(bool takes_maps, Config config = {}) {
        if (auto info = nvrtc_info(); !info.ok()) GTEST_SKIP() << info.status().message();
        if (!device_) open();
        parameter_bytes_ = takes_maps ? sizeof(kernel::Sm90Arguments) : sizeof(kernel::ForwardParameters);
        fake_.set_parameter_bytes(parameter_bytes_);
        KernelSpec spec;
        spec.config = config;
        auto kernel = device_->load(empty_kernel(parameter_bytes_, "sm_90a"), spec, {"", "attention_forward", 128, 4096});
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        kernel_ = *std::move(kernel);
    }
    // One batch, four heads, 300 queries and keys, 64 columns.
    kernel::ForwardParameters parameters() {
        kernel::ForwardParameters p{};
        p.query = query_.bytes, p.key = key_.bytes, p.value = value_.bytes, p.out = out_.bytes;
        p.query_strides = p.key_strides = p.value_strides = p.out_strides = {4 * 300 * 64, 300 * 64, 64};
        p.batch = 1, p.heads_q = p.heads_kv = 4, p.seq_q = p.seq_kv = 300, p.scale = 1;
        return p;
    }
    kernel::ForwardParameters launched() {
        kernel::ForwardParameters p;
        fake_cuda::Launch launch = fake_.last_launch();
        std::memcpy(&p, launch.parameters + (parameter_bytes_ == sizeof p ? 0 : offsetof(kernel::Sm90Arguments, parameters)), sizeof p);
        return p;
    }

    std::optional<SharedLibrary> library_;
    fake_cuda::Controls fake_{};
    std::unique_ptr<Backend> backend_;  // before the device, before the kernel
    std::unique_ptr<Device> device_;
    std::unique_ptr<Kernel> kernel_;
    size_t parameter_bytes_ = 0;
    Aligned query_, key_, value_, out_;
};

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
    auto work = [&]() -> Status {
        TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, backend_->open(0));
        TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> loaded, device->load(object, spec, {"", "attention_forward", 128, 4096}));
        TILEWRIGHT_ASSIGN_OR_RETURN(void* memory, device->allocate(64));
        char bytes[64] = {};
        Status used = device->copy_to_device(memory, bytes, 64);
        if (used.ok()) used = device->copy_to_host(bytes, memory, 64);
        if (used.ok()) used = device->fill(memory, 0, 64);
        if (used.ok()) used = device->time_us(2, nullptr, [&] { return device->launch(*loaded, parameters(), nullptr); }).status();
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
            EXPECT_EQ(fake_.alive(), 0);
        }
    }
}

TEST_F(NvidiaDriver, CodeForAnotherDeviceIsRefused) {
    if (auto info = nvrtc_info(); !info.ok()) GTEST_SKIP() << info.status().message();
    open(1);
    auto kernel = device_->load(empty_kernel(sizeof(kernel::Sm90Arguments), "sm_90a"), {}, {"", "attention_forward", 128, 4096});
    EXPECT_THAT(kernel.status().message(), HasSubstr("sm_90a does not run on a device of compute capability 8.0"));
    open(0);
    kernel = device_->load(empty_kernel(sizeof(kernel::ForwardParameters), "sm_80"), {}, {"", "attention_forward", 128, 4096});
    EXPECT_EQ(kernel.status().code(), StatusCode::unsupported);
}

TEST_F(NvidiaDriver, AKernelThatDoesNotMatchTheHostIsRefused) {
    if (auto info = nvrtc_info(); !info.ok()) GTEST_SKIP() << info.status().message();
    open();
    auto wrong_size = device_->load(empty_kernel(40, "sm_90a"), {}, {"", "attention_forward", 128, 4096});
    EXPECT_THAT(wrong_size.status().message(), HasSubstr("takes 40 bytes"));
    CodeObject object = empty_kernel(sizeof(kernel::ForwardParameters), "sm_90a");
    EXPECT_EQ(device_->load(object, {}, {"", "attention_backward", 128, 4096}).status().code(), StatusCode::not_found);
    EXPECT_THAT(device_->load(object, {}, {"", "attention_forward", 128, 300000}).status().message(), HasSubstr("300000 bytes"));
    EXPECT_THAT(device_->load(object, {}, {"", "attention_forward", 2048, 0}).status().message(), HasSubstr("does not fit"));
}

TEST_F(NvidiaDriver, OneBlockATileOrAsManyAsFit) {
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

TEST_F(NvidiaDriver, TensorMapsAreMadeOnceForATensor) {
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

TEST_F(NvidiaDriver, NoKeysAndNoQueriesAreLegal) {
    load(true);
    kernel::ForwardParameters p = parameters();
    p.key = p.value = nullptr, p.seq_kv = 0;
    EXPECT_TRUE(device_->launch(*kernel_, p, nullptr).ok());
    EXPECT_EQ(fake_.calls("cuLaunchKernel"), 1);
    p.seq_q = 0;
    EXPECT_TRUE(device_->launch(*kernel_, p, nullptr).ok());
    EXPECT_EQ(fake_.calls("cuLaunchKernel"), 1);
}

TEST_F(NvidiaDriver, MisalignedTensorsAreNamed) {
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

TEST_F(NvidiaDriver, EveryStreamHasItsOwnTileCounter) {
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

TEST_F(NvidiaDriver, CapturedLaunchesShareNoCounterAndAllocateNothing) {
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

TEST_F(NvidiaDriver, ThreadsLaunchAtTheSameTime) {
    load(true);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) EXPECT_TRUE(device_->launch(*kernel_, parameters(), nullptr).ok());
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(fake_.calls("cuLaunchKernel"), 800);
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
