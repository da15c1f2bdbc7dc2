// A stand-in for NVIDIA's driver library: keeps books of what is alive, refuses wrong calls, fails where it is told to.
// Tests open it like the real one and steer it through the functions below, which it exports besides the driver's.
#pragma once
#include <cstddef>

namespace fake_cuda {

// What cuLaunchKernel was given last.
struct Launch {
    unsigned grid = 0, threads = 0, shared_bytes = 0;
    void* stream = nullptr;
    unsigned char parameters[1024] = {};
};

struct Controls {
    void (*reset)();                                          // no failures, two devices, no launches; counts of calls at 0
    void (*fail)(const char* function, int after, int error);  // the call of `function` after so many good ones returns `error`, once
    int (*calls)(const char* function);
    int (*alive)();                                           // allocations, streams, events, modules and retained contexts
    void (*set_parameter_bytes)(size_t bytes);                // how much of a kernel's parameter a launch copies
    Launch (*last_launch)();
    void* (*new_stream)();                                    // the caller's own
    void (*delete_stream)(void* stream);                      // its address may be given out again
    void (*set_capturing)(void* stream, bool capturing);
    void* (*new_context)();                                   // of the caller, pushed on this thread
    void (*drop_context)();
    void* (*current_context)();
};

}  // namespace fake_cuda
