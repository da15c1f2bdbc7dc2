// CUDA's driver library, opened with dlopen: the functions that are used, each returning a Status with CUDA's name and text of an error.
#pragma once
#include <memory>
#include <string>

#include "backends/shared_library.h"
#include "tilewright/status.h"

namespace tilewright::nvidia {

// The types of cuda.h, whose layout the driver's interface has frozen.
using DevicePointer = unsigned long long;
using DeviceHandle = int;
using Context = struct ContextHandle*;
using Stream = struct StreamHandle*;  // null: the legacy default stream
using Event = struct EventHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;

// Numbers from cuda.h.
namespace attribute {  // CU_DEVICE_ATTRIBUTE_
constexpr int max_threads_per_block = 1, warp_size = 10, clock_khz = 13, multiprocessors = 16, pci_bus = 33, pci_device = 34, memory_clock_khz = 36, bus_bits = 37, l2_bytes = 38,
              max_threads_per_multiprocessor = 39, pci_domain = 50, compute_major = 75, compute_minor = 76, shared_per_multiprocessor = 81,
              registers_per_multiprocessor = 82, shared_per_block = 97, blocks_per_multiprocessor = 106, shared_reserved = 111;
}
namespace function_attribute {  // CU_FUNC_ATTRIBUTE_
constexpr int max_dynamic_shared = 8;
}
constexpr int error_no_device = 100;
constexpr int capture_mode_relaxed = 2;      // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr unsigned stream_nonblocking = 1;   // CU_STREAM_NON_BLOCKING
constexpr unsigned event_default = 0;
constexpr int oldest_driver = 12040;         // 1000 * major + 10 * minor

// cuda.h's CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
    static constexpr int programmatic_serialization = 6;
    int id = 0, unused = 0;
    int value[16] = {};
};
struct LaunchConfig {
    unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared_bytes = 0;
    Stream stream = nullptr;
    LaunchAttribute* attributes = nullptr;
    unsigned attribute_count = 0;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

class Driver;

// One function of the library. Calling it calls the driver and looks at the result.
template <class... Arguments>
class Call {
public:
    Call(Driver& driver, const char* name, const char* symbol = nullptr);
    template <class... Given>
    Status operator()(Given... given) const;

private:
    const Driver& driver_;
    const char* name_;
    int (*function_)(Arguments...) = nullptr;
};

// Thread-safe, as the driver's functions are. Immovable: its calls refer to it.
class Driver {
public:
    // unavailable, in one sentence: the library is absent, too old, lacks a function, or finds no device.
    static Result<std::unique_ptr<Driver>> open(const std::string& library);
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

    int version() const { return version_; }
    Status failure(const char* call, int result) const;  // "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"

private:
    template <class... Arguments>
    friend class Call;
    explicit Driver(SharedLibrary library);
    SharedLibrary library_;  // before the calls, which look themselves up in it
    Status missing_;         // the first function that the library lacks
    int version_ = 0;
    int (*error_name_)(int, const char**) = nullptr;
    int (*error_text_)(int, const char**) = nullptr;

public:
    Call<unsigned> init{*this, "cuInit"};
    Call<int*> get_version{*this, "cuDriverGetVersion"};
    Call<int*> device_count{*this, "cuDeviceGetCount"};
    Call<DeviceHandle*, int> device_get{*this, "cuDeviceGet"};
    Call<char*, int, DeviceHandle> device_name{*this, "cuDeviceGetName"};
    Call<int*, int, DeviceHandle> device_attribute{*this, "cuDeviceGetAttribute"};
    Call<Context*, DeviceHandle> retain_primary{*this, "cuDevicePrimaryCtxRetain"};
    Call<DeviceHandle> release_primary{*this, "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2"};
    Call<Context*> current_context{*this, "cuCtxGetCurrent"};
    Call<Context> push_context{*this, "cuCtxPushCurrent", "cuCtxPushCurrent_v2"};
    Call<Context*> pop_context{*this, "cuCtxPopCurrent", "cuCtxPopCurrent_v2"};
    Call<> synchronize{*this, "cuCtxSynchronize"};
    Call<DevicePointer*, size_t> allocate{*this, "cuMemAlloc", "cuMemAlloc_v2"};
    Call<DevicePointer> free{*this, "cuMemFree", "cuMemFree_v2"};
    Call<DevicePointer, const void*, size_t> copy_to_device{*this, "cuMemcpyHtoD", "cuMemcpyHtoD_v2"};
    Call<void*, DevicePointer, size_t> copy_to_host{*this, "cuMemcpyDtoH", "cuMemcpyDtoH_v2"};
    Call<DevicePointer, unsigned char, size_t, Stream> fill{*this, "cuMemsetD8Async"};
    Call<Stream*, unsigned> create_stream{*this, "cuStreamCreate"};
    Call<Stream> destroy_stream{*this, "cuStreamDestroy", "cuStreamDestroy_v2"};
    Call<Stream> synchronize_stream{*this, "cuStreamSynchronize"};
    Call<Stream, unsigned long long*> stream_id{*this, "cuStreamGetId"};
    Call<Stream, int*> is_capturing{*this, "cuStreamIsCapturing"};
    Call<int*> exchange_capture_mode{*this, "cuThreadExchangeStreamCaptureMode"};
    Call<Event*, unsigned> create_event{*this, "cuEventCreate"};
    Call<Event> destroy_event{*this, "cuEventDestroy", "cuEventDestroy_v2"};
    Call<Event, Stream> record{*this, "cuEventRecord"};
    Call<Event> synchronize_event{*this, "cuEventSynchronize"};
    Call<float*, Event, Event> elapsed_ms{*this, "cuEventElapsedTime"};
    Call<Module*, const void*> load_module{*this, "cuModuleLoadData"};
    Call<Module> unload_module{*this, "cuModuleUnload"};
    Call<Function*, Module, const char*> get_function{*this, "cuModuleGetFunction"};
    Call<Function, int, int> set_function_attribute{*this, "cuFuncSetAttribute"};
    Call<int*, Function, int, size_t> resident_blocks{*this, "cuOccupancyMaxActiveBlocksPerMultiprocessor"};
    // Grid and block in x, y, z; dynamic shared bytes; addresses of the kernel's parameters.
    Call<Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**> launch{*this, "cuLaunchKernel"};
    Call<const LaunchConfig*, Function, void**, void**> launch_as{*this, "cuLaunchKernelEx"};
    // Map, data type, rank, address, dimensions, strides in bytes, box, element strides, interleave, swizzle, L2 promotion, fill.
    Call<void*, int, unsigned, void*, const unsigned long long*, const unsigned long long*, const unsigned*, const unsigned*, int, int, int, int>
        encode_tensor_map{*this, "cuTensorMapEncodeTiled"};
};

template <class... Arguments>
Call<Arguments...>::Call(Driver& driver, const char* name, const char* symbol) : driver_(driver), name_(name) {
    Status bound = driver.library_.bind(symbol ? symbol : name, function_);
    if (!bound.ok() && driver.missing_.ok()) driver.missing_ = bound;
}

template <class... Arguments>
template <class... Given>
Status Call<Arguments...>::operator()(Given... given) const {
    int result = function_(given...);
    return result == 0 ? Status() : driver_.failure(name_, result);
}

// Runs `body` in relaxed mode: this thread may then allocate, load and wait while it or another thread captures a stream.
template <class Body>
Status in_relaxed_capture_mode(const Driver& driver, Body&& body) {
    int mode = capture_mode_relaxed;
    TILEWRIGHT_RETURN_IF_ERROR(driver.exchange_capture_mode(&mode));
    Status status = body();
    Status restored = driver.exchange_capture_mode(&mode);
    return status.ok() ? restored : status;
}

// Runs `body` with `context` current, and leaves the caller's own as it was.
template <class Body>
Status in_context(const Driver& driver, Context context, Body&& body) {
    Context current = nullptr;
    TILEWRIGHT_RETURN_IF_ERROR(driver.current_context(&current));
    if (current == context) return body();
    TILEWRIGHT_RETURN_IF_ERROR(driver.push_context(context));
    Status status = body();
    Status popped = driver.pop_context(&current);
    return status.ok() ? popped : status;
}

}  // namespace tilewright::nvidia
