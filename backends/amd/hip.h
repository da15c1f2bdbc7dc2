// The HIP runtime, opened with dlopen. Only what has not changed from ROCm 5.2 to 7 is declared.
#pragma once
#include <cstddef>
#include <string>

#include "backends/shared_library.h"
#include "tilewright/status.h"

namespace tilewright::amd {

using Stream = struct HipStreamObject*;  // null: the default one
using Event = struct HipEventObject*;
using Module = struct HipModuleObject*;
using Function = struct HipFunctionObject*;

// Name below "hip", and parameters. All return a hipError_t, whose zero is success.
#define TILEWRIGHT_HIP_CALLS(row)                                                                                                                              \
    row(Init, (unsigned flags)) row(RuntimeGetVersion, (int* version)) row(GetDeviceCount, (int* count)) row(GetDevice, (int* device))                         \
        row(SetDevice, (int device)) row(DeviceGetName, (char* name, int bytes, int device)) row(DeviceGetAttribute, (int* value, int attribute, int device))  \
            row(DeviceSynchronize, ()) row(Malloc, (void** address, size_t bytes)) row(Free, (void* address))                                                  \
                row(Memcpy, (void* to, const void* from, size_t bytes, int kind)) row(Memset, (void* to, int value, size_t bytes))                             \
                    row(StreamSynchronize, (Stream stream)) row(EventCreate, (Event * event)) row(EventDestroy, (Event event))                                 \
                        row(EventRecord, (Event event, Stream stream)) row(EventSynchronize, (Event event)) row(                                               \
                            EventElapsedTime, (float* milliseconds, Event start, Event end)) row(ModuleLoadData, (Module * module, const void* image))         \
                            row(ModuleUnload, (Module module)) row(ModuleGetFunction, (Function * function, Module module, const char* name)) row(             \
                                ModuleLaunchKernel, (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
                                                     unsigned block_z, unsigned shared_bytes, Stream stream, void** arguments, void** extra))                  \
                                row(ModuleOccupancyMaxActiveBlocksPerMultiprocessor, (int* blocks, Function function, int threads, size_t shared_bytes))

constexpr int copy_to_device = 1, copy_to_host = 2;  // hipMemcpyKind
constexpr int error_no_device = 100;                 // hipErrorNoDevice

namespace attribute {  // hipDeviceAttribute_t
constexpr int clock_khz = 5, l2_bytes = 19, max_threads_per_block = 56, units = 63, pci_bus = 67, pci_device = 68, pci_domain = 69, shared_bytes_per_block = 74, warp_size = 87;
}

// The opened library. Thread-safe.
class Hip {
public:
    // `library`: a file; empty: TILEWRIGHT_HIP_LIBRARY, else libamdhip64.so where ROCm installs it. unavailable: no such library,
    // or one without these functions.
    static Result<Hip> open(const std::string& library);

#define TILEWRIGHT_HIP_CALL(name, parameters) int(*name) parameters = nullptr;
    TILEWRIGHT_HIP_CALLS(TILEWRIGHT_HIP_CALL)
#undef TILEWRIGHT_HIP_CALL

    // ok, or runtime with the call's name and HIP's name and text of the error.
    Status check(const char* call, int result) const;
    // The architecture with its features: "gfx942:sramecc+:xnack-".
    Result<std::string> device_arch(int device) const;

private:
    SharedLibrary library_;
    const char* (*error_name_)(int result) = nullptr;
    const char* (*error_text_)(int result) = nullptr;
    int (*properties_)(void* properties, int device) = nullptr;
};

}  // namespace tilewright::amd

// Calls hip.name(arguments) and returns its error from the enclosing function.
#define TILEWRIGHT_HIP(hip, name, ...) TILEWRIGHT_RETURN_IF_ERROR((hip).check("hip" #name, (hip).name(__VA_ARGS__)))
