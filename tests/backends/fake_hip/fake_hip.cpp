// The functions of libamdhip64 that the AMD backend binds: memory is the host's, launches are remembered, nothing runs.
#include "fake_hip.h"

#include <cstdlib>
#include <cstring>

namespace {

fake_hip::State state;
constexpr int invalid_value = 1, invalid_device = 101, capture_unsupported = 900, capture_invalidated = 901;

int called(const char* name) {
    state.calls.push_back(name);
    return state.failing_call == name ? state.error : 0;
}
// Of calls that no capture survives.
int refused() {
    if (!state.capturing) return 0;
    state.capture_lost = true;
    return capture_unsupported;
}
int opaque;  // its address stands for every module, function and event

}  // namespace

#define CALLED(name) \
    if (int error = called(name)) return error
#define CALLED_OUTSIDE_CAPTURES(name) \
    CALLED(name);                     \
    if (int error = refused()) return error

extern "C" {

fake_hip::State& fake_hip_state() { return state; }

const char* hipGetErrorName(int error) {
    if (error == capture_unsupported) return "hipErrorStreamCaptureUnsupported";
    return error == 2 ? "hipErrorOutOfMemory" : error == 100 ? "hipErrorNoDevice" : "hipErrorInvalidValue";
}
const char* hipGetErrorString(int error) {
    if (error == capture_unsupported) return "operation not permitted when stream is capturing";
    return error == 2 ? "out of memory" : error == 100 ? "no ROCm-capable device is detected" : "invalid argument";
}
int hipInit(unsigned flags) {
    CALLED("hipInit");
    return flags == 0 ? 0 : invalid_value;
}
int hipRuntimeGetVersion(int* version) {
    CALLED("hipRuntimeGetVersion");
    *version = state.runtime_version;
    return 0;
}
int hipGetDeviceCount(int* count) {
    CALLED("hipGetDeviceCount");
    *count = state.devices;
    return 0;
}
int hipGetDevice(int* device) {
    CALLED("hipGetDevice");
    *device = state.current_device;
    return 0;
}
int hipSetDevice(int device) {
    CALLED("hipSetDevice");
    if (device < 0 || device >= state.devices) return invalid_device;
    state.current_device = device;
    return 0;
}
int hipDeviceGetName(char* name, int bytes, int device) {
    CALLED("hipDeviceGetName");
    if (device >= state.devices) return invalid_device;
    strncpy(name, "AMD Instinct gfx-free name", static_cast<size_t>(bytes));
    return 0;
}
int hipGetDevicePropertiesR0600(void* properties, int device) {
    CALLED("hipGetDevicePropertiesR0600");
    if (device >= state.devices) return invalid_device;
    strcpy(static_cast<char*>(properties), "AMD Instinct gfx9 name");
    strcpy(static_cast<char*>(properties) + state.arch_offset, state.arch.c_str());
    return 0;
}
int hipDeviceGetAttribute(int* value, int attribute, int device) {
    CALLED("hipDeviceGetAttribute");
    if (device >= state.devices) return invalid_device;
    switch (attribute) {  // the numbers of hip_runtime_api.h
        case 5:
            *value = 2100000;
            return 0;
        case 19:
            *value = 4 << 20;
            return 0;
        case 67:
            *value = 0xc1;
            return 0;
        case 68:
            *value = 5;
            return 0;
        case 69:
            *value = 0;
            return 0;
        case 56:
            *value = 1024;
            return 0;
        case 63:
            *value = 152;
            return 0;
        case 74:
            *value = 65536;
            return 0;
        case 87:
            *value = state.wave;
            return 0;
        default:
            return invalid_value;
    }
}
int hipDeviceSynchronize() {
    CALLED_OUTSIDE_CAPTURES("hipDeviceSynchronize");
    return 0;
}
int hipMalloc(void** address, size_t bytes) {
    CALLED_OUTSIDE_CAPTURES("hipMalloc");
    *address = malloc(bytes);
    ++state.live_allocations;
    return 0;
}
int hipFree(void* address) {
    CALLED_OUTSIDE_CAPTURES("hipFree");
    free(address);
    --state.live_allocations;
    return 0;
}
int hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
    CALLED_OUTSIDE_CAPTURES("hipMemcpy");
    if (kind != 1 && kind != 2) return invalid_value;
    memcpy(to, from, bytes);
    return 0;
}
int hipMemset(void* to, int value, size_t bytes) {
    CALLED_OUTSIDE_CAPTURES("hipMemset");
    memset(to, value, bytes);
    return 0;
}
int hipStreamSynchronize(void*) {
    CALLED_OUTSIDE_CAPTURES("hipStreamSynchronize");
    return 0;
}
int hipEventCreate(void** event) {
    CALLED("hipEventCreate");
    *event = &opaque;
    ++state.live_events;
    return 0;
}
int hipEventDestroy(void* event) {
    CALLED("hipEventDestroy");
    --state.live_events;
    return event == &opaque ? 0 : invalid_value;
}
int hipEventRecord(void* event, void*) {
    CALLED("hipEventRecord");
    return event == &opaque ? 0 : invalid_value;
}
int hipEventSynchronize(void* event) {
    CALLED_OUTSIDE_CAPTURES("hipEventSynchronize");
    return event == &opaque ? 0 : invalid_value;
}
int hipEventElapsedTime(float* milliseconds, void*, void*) {
    CALLED("hipEventElapsedTime");
    *milliseconds = 0.25f;
    return 0;
}
int hipModuleLoadData(void** module, const void* image) {
    CALLED("hipModuleLoadData");
    state.image.assign(static_cast<const char*>(image), 4);
    *module = &opaque;
    ++state.live_modules;
    return 0;
}
int hipModuleUnload(void* module) {
    CALLED("hipModuleUnload");
    --state.live_modules;
    return module == &opaque ? 0 : invalid_value;
}
int hipModuleGetFunction(void** function, void* module, const char*) {
    CALLED("hipModuleGetFunction");
    *function = module;
    return 0;
}
int hipModuleLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, void* stream, void** arguments, void** extra) {
    CALLED("hipModuleLaunchKernel");
    if (function != &opaque || !arguments || extra) return invalid_value;
    if (state.capturing && !stream) return refused();  // the default stream would wait for the captured one
    (stream && stream == state.capturing ? state.graph.launches : state.launches)
        .push_back({{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, std::string(static_cast<const char*>(arguments[0]), state.argument_bytes)});
    return 0;
}
int hipStreamBeginCapture(void* stream, int mode) {
    CALLED("hipStreamBeginCapture");
    if (!stream || mode != 0 || state.capturing) return invalid_value;
    state.capturing = stream, state.capture_lost = false, state.graph = {};
    return 0;
}
int hipStreamEndCapture(void* stream, void** graph) {
    CALLED("hipStreamEndCapture");
    if (stream != state.capturing) return invalid_value;
    state.capturing = nullptr;
    *graph = state.capture_lost ? nullptr : new fake_hip::Graph(state.graph);
    return state.capture_lost ? capture_invalidated : 0;
}
int hipGraphInstantiate(void** executable, void* graph, void*, char*, size_t) {
    CALLED("hipGraphInstantiate");
    *executable = new fake_hip::Graph(*static_cast<fake_hip::Graph*>(graph));
    return 0;
}
int hipGraphLaunch(void* executable, void* stream) {
    CALLED("hipGraphLaunch");
    for (fake_hip::Launch launch : static_cast<fake_hip::Graph*>(executable)->launches) launch.stream = stream, state.launches.push_back(launch);
    return 0;
}
int hipGraphExecDestroy(void* executable) {
    CALLED("hipGraphExecDestroy");
    delete static_cast<fake_hip::Graph*>(executable);
    return 0;
}
int hipGraphDestroy(void* graph) {
    CALLED("hipGraphDestroy");
    delete static_cast<fake_hip::Graph*>(graph);
    return 0;
}
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads, size_t) {
    CALLED("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor");
    if (function != &opaque) return invalid_value;
    *blocks = threads == 128 ? 3 : 1;
    return 0;
}
}
