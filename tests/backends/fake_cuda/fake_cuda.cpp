// The driver's functions over host memory, and the controls.
#include "fake_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

enum Error { success = 0, invalid_value = 1, out_of_memory = 2, invalid_context = 201, not_captured = 900, invalid_handle = 400, not_found = 500 };

struct Failure {
    int after = 0, error = 0;
};
struct FakeStream {
    unsigned long long id = 0;
    bool capturing = false;
};

std::mutex mutex;
std::map<std::string, int> calls;
std::map<std::string, Failure> failures;
std::set<void*> allocations, events, modules;
std::map<void*, FakeStream> streams;
int retained = 0;
unsigned long long next_stream_id = 10;
char primary[2], foreign;  // contexts are addresses
size_t parameter_bytes = 0;
fake_cuda::Launch launched;
thread_local std::vector<void*> contexts;
thread_local int capture_mode = 0;

// The first line of every function: counts the call, and returns the failure that is due.
int enter(const char* function) {
    std::lock_guard lock(mutex);
    ++calls[function];
    auto failure = failures.find(function);
    if (failure == failures.end() || failure->second.after-- > 0) return success;
    int error = failure->second.error;
    failures.erase(failure);
    return error;
}
#define FAKE_ENTER() \
    if (int error_ = enter(__func__)) return error_
#define FAKE_ENTER_CONTEXT() \
    FAKE_ENTER();            \
    if (contexts.empty()) return invalid_context

// What the driver refuses while a stream is captured, but for a thread in relaxed mode.
bool forbidden_now() {
    std::lock_guard lock(mutex);
    return capture_mode != 2 && std::ranges::any_of(streams, [](const auto& stream) { return stream.second.capturing; });
}
bool known_stream(void* stream) {
    std::lock_guard lock(mutex);
    return !stream || streams.count(stream);
}
int add(std::set<void*>& set, void** out, size_t bytes = 256) {
    void* made = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::lock_guard lock(mutex);
    set.insert(made);
    *out = made;
    return success;
}
int remove(std::set<void*>& set, void* item) {
    std::lock_guard lock(mutex);
    if (!set.erase(item)) return invalid_handle;
    std::free(item);
    return success;
}
// Whether [address, address + bytes) is memory of the device.
bool inside(unsigned long long address) {
    std::lock_guard lock(mutex);
    return !allocations.empty() && address >= (unsigned long long)*allocations.begin();
}

const std::map<int, std::pair<int, int>> attributes = {  // attribute -> values of the two devices
    {1, {1024, 1024}}, {10, {32, 32}}, {13, {1980000, 1410000}}, {16, {132, 54}}, {33, {0x3b, 0x5e}}, {34, {0, 0}}, {36, {3201000, 1593000}}, {37, {6144, 5120}},
    {38, {62914560, 41943040}}, {39, {2048, 2048}}, {50, {0, 0}}, {75, {9, 8}}, {76, {0, 0}}, {81, {233472, 167936}}, {82, {65536, 65536}},
    {97, {232448, 166912}}, {106, {32, 32}}, {111, {1024, 1024}},
};

}  // namespace

extern "C" {

int cuInit(unsigned) { return enter("cuInit"); }
int cuDriverGetVersion(int* version) {
    FAKE_ENTER();
    *version = 13000;
    return success;
}
int cuGetErrorName(int error, const char** name) {
    *name = error == out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY" : error == invalid_value ? "CUDA_ERROR_INVALID_VALUE" : error == invalid_context ? "CUDA_ERROR_INVALID_CONTEXT" : nullptr;
    return *name ? success : invalid_value;
}
int cuGetErrorString(int error, const char** text) {
    *text = error == out_of_memory ? "out of memory" : error == invalid_value ? "invalid argument" : error == invalid_context ? "invalid device context" : nullptr;
    return *text ? success : invalid_value;
}
int cuDeviceGetCount(int* count) {
    FAKE_ENTER();
    *count = 2;
    return success;
}
int cuDeviceGet(int* device, int index) {
    FAKE_ENTER();
    *device = index;
    return index >= 0 && index < 2 ? success : 101;
}
int cuDeviceGetName(char* name, int size, int device) {
    FAKE_ENTER();
    std::strncpy(name, device == 0 ? "Fake H200" : "Fake A30", size);
    return success;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    FAKE_ENTER();
    auto found = attributes.find(attribute);
    if (found == attributes.end()) return invalid_value;
    *value = device == 0 ? found->second.first : found->second.second;
    return success;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
    FAKE_ENTER();
    ++retained;
    *context = primary + device;
    return success;
}
int cuDevicePrimaryCtxRelease_v2(int) { FAKE_ENTER(); return --retained >= 0 ? success : invalid_context; }
int cuCtxGetCurrent(void** context) {
    FAKE_ENTER();
    *context = contexts.empty() ? nullptr : contexts.back();
    return success;
}
int cuCtxPushCurrent_v2(void* context) {
    FAKE_ENTER();
    contexts.push_back(context);
    return success;
}
int cuCtxPopCurrent_v2(void** context) {
    FAKE_ENTER_CONTEXT();
    *context = contexts.back();
    contexts.pop_back();
    return success;
}
int cuCtxSynchronize() { FAKE_ENTER_CONTEXT(); return success; }
int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
    FAKE_ENTER_CONTEXT();
    if (bytes == 0) return invalid_value;
    if (forbidden_now()) return not_captured;
    if (bytes > size_t{1} << 40) return out_of_memory;
    return add(allocations, reinterpret_cast<void**>(address), bytes);
}
int cuMemFree_v2(unsigned long long address) { FAKE_ENTER_CONTEXT(); return remove(allocations, reinterpret_cast<void*>(address)); }
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
    FAKE_ENTER_CONTEXT();
    if (!inside(to)) return invalid_value;
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return success;
}
int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
    FAKE_ENTER_CONTEXT();
    if (!inside(from)) return invalid_value;
    std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    return success;
}
int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void* stream) {
    FAKE_ENTER_CONTEXT();
    if (!inside(to) || !known_stream(stream)) return invalid_value;
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return success;
}
int cuStreamCreate(void** stream, unsigned) {
    FAKE_ENTER_CONTEXT();
    std::lock_guard lock(mutex);
    *stream = std::malloc(1);
    streams[*stream] = {next_stream_id++, false};
    return success;
}
int cuStreamDestroy_v2(void* stream) {
    FAKE_ENTER_CONTEXT();
    std::lock_guard lock(mutex);
    std::free(stream);
    return streams.erase(stream) ? success : invalid_handle;
}
int cuStreamSynchronize(void* stream) {
    FAKE_ENTER_CONTEXT();
    if (forbidden_now()) return not_captured;
    return known_stream(stream) ? success : invalid_handle;
}
int cuStreamGetId(void* stream, unsigned long long* id) {
    FAKE_ENTER_CONTEXT();
    if (!known_stream(stream)) return invalid_handle;
    std::lock_guard lock(mutex);
    *id = stream ? streams[stream].id : 1;
    return success;
}
int cuStreamIsCapturing(void* stream, int* capturing) {
    FAKE_ENTER_CONTEXT();
    if (!known_stream(stream)) return invalid_handle;
    std::lock_guard lock(mutex);
    *capturing = stream && streams[stream].capturing;
    return success;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
    FAKE_ENTER();
    std::swap(*mode, capture_mode);
    return success;
}
int cuEventCreate(void** event, unsigned) { FAKE_ENTER_CONTEXT(); return add(events, event); }
int cuEventDestroy_v2(void* event) { FAKE_ENTER_CONTEXT(); return remove(events, event); }
int cuEventRecord(void*, void*) { FAKE_ENTER_CONTEXT(); return success; }
int cuEventSynchronize(void*) { FAKE_ENTER_CONTEXT(); return success; }
int cuEventElapsedTime(float* milliseconds, void*, void*) {
    FAKE_ENTER_CONTEXT();
    *milliseconds = 0.25f;
    return success;
}
int cuModuleLoadData(void** module, const void* image) {
    FAKE_ENTER_CONTEXT();
    if (forbidden_now()) return not_captured;
    if (std::memcmp(image, "\177ELF", 4) != 0) return invalid_value;
    return add(modules, module);
}
int cuModuleUnload(void* module) { FAKE_ENTER_CONTEXT(); return remove(modules, module); }
int cuModuleGetFunction(void** function, void* module, const char*) {
    FAKE_ENTER_CONTEXT();
    *function = module;
    return success;
}
int cuFuncSetAttribute(void*, int, int) { FAKE_ENTER_CONTEXT(); return success; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads, size_t) {
    FAKE_ENTER_CONTEXT();
    *blocks = threads > 1024 ? 0 : 2;
    return success;
}
int cuLaunchKernel(void* function, unsigned grid, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned shared, void* stream, void** parameters, void**) {
    FAKE_ENTER_CONTEXT();
    if (!known_stream(stream) || grid == 0 || threads == 0) return invalid_value;
    std::lock_guard lock(mutex);
    if (!modules.count(function)) return invalid_handle;
    launched = {grid, threads, shared, stream, {}};
    std::memcpy(launched.parameters, parameters[0], parameter_bytes);
    return success;
}
struct LaunchConfig {  // CUlaunchConfig
    unsigned grid[3], block[3], shared_bytes;
    void *stream, *attributes;
    unsigned attribute_count;
};
int cuLaunchKernelEx(const LaunchConfig* c, void* function, void** parameters, void** extra) {
    return cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared_bytes, c->stream, parameters, extra);
}
int cuTensorMapEncodeTiled(void* map, int, unsigned rank, void* address, const unsigned long long* dims, const unsigned long long* strides, const unsigned* box, const unsigned*,
                           int, int, int, int) {
    FAKE_ENTER();
    if ((unsigned long long)map % 64 || (unsigned long long)address % 16 || !address || rank < 3 || rank > 5) return invalid_value;
    for (unsigned i = 0; i < rank; ++i)
        if (dims[i] == 0 || box[i] == 0 || box[i] > 256 || (i > 0 && (strides[i - 1] % 16 || strides[i - 1] >> 40))) return invalid_value;
    std::memset(map, 0, 128);
    std::memcpy(map, &address, sizeof address);
    std::memcpy(static_cast<char*>(map) + 8, dims, rank * 8);
    return success;
}

fake_cuda::Controls fake_cuda_controls() {
    return {
        [] { std::lock_guard lock(mutex); failures.clear(); calls.clear(); launched = {}; capture_mode = 0; },
        [](const char* function, int after, int error) { std::lock_guard lock(mutex); failures[function] = {after, error}; },
        [](const char* function) { std::lock_guard lock(mutex); return calls[function]; },
        [] { std::lock_guard lock(mutex); return int(allocations.size() + streams.size() + events.size() + modules.size()) + retained; },
        [](size_t bytes) { parameter_bytes = bytes; },
        [] { return launched; },
        []() -> void* {
            std::lock_guard lock(mutex);
            static char storage[64];
            for (char& free : storage)
                if (!streams.count(&free)) {
                    streams[&free] = {next_stream_id++, false};
                    return &free;
                }
            return nullptr;
        },
        [](void* stream) { std::lock_guard lock(mutex); streams.erase(stream); },
        [](void* stream, bool capturing) { std::lock_guard lock(mutex); streams[stream].capturing = capturing; },
        []() -> void* { contexts.push_back(&foreign); return &foreign; },
        [] { contexts.pop_back(); },
        []() -> void* { return contexts.empty() ? nullptr : contexts.back(); },
    };
}

}  // extern "C"
