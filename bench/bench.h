// C functions with which a script measures our kernels beside those of others, on tensors that it owns.
#pragma once
#include <cstdint>

#define TILEWRIGHT_BENCH_API extern "C" __attribute__((visibility("default")))

// A failure returns null or a number other than 0; the calling thread's last one is told by tilewright_bench_error().
// All functions are thread-safe; several threads may load at once.
TILEWRIGHT_BENCH_API const char* tilewright_bench_error();  // valid until the thread's next failure

// The NVIDIA device of that index; stays open until the process ends.
TILEWRIGHT_BENCH_API void* tilewright_bench_open(int index);

// Compiles and loads the kernel for a problem text and a config's JSON; contiguous last dimensions, addresses and strides
// multiples of 16 bytes. Refuses what spills. Lives until the process ends.
TILEWRIGHT_BENCH_API void* tilewright_bench_load(void* device, const char* problem, const char* config);

// Texts are valid until the thread's next call that returns one.
// A config's canonical JSON, every field in its place.
TILEWRIGHT_BENCH_API const char* tilewright_bench_canonical(const char* config);
// The model's best configs, one canonical JSON a line, at most `count`.
TILEWRIGHT_BENCH_API const char* tilewright_bench_ranked(void* device, const char* problem, int count);

struct TilewrightBenchTensor {
    void* address;                // on the device, [batch][head][row][column]
    int64_t batch, head, row;     // strides in elements
};
// A call of a loaded kernel on these tensors, with the sizes of `problem`, which may differ from those it was loaded with in sizes alone.
// `lse` may be null. Lives until the process ends.
TILEWRIGHT_BENCH_API void* tilewright_bench_call(void* kernel, const char* problem, const TilewrightBenchTensor* query, const TilewrightBenchTensor* key,
                                                 const TilewrightBenchTensor* value, const TilewrightBenchTensor* out, float* lse);
// A backward: loads its kernels for dense, aligned tensors of this problem, refusing what spills, and says how much workspace a call needs (bytes, of the device).
// A config without members is the default one. Lives until the process ends.
TILEWRIGHT_BENCH_API void* tilewright_bench_load_backward(void* device, const char* problem, const char* config);
// The canonical JSON of its config; until the thread's next call.
TILEWRIGHT_BENCH_API const char* tilewright_bench_backward_config(void* kernels);
TILEWRIGHT_BENCH_API int64_t tilewright_bench_backward_workspace(void* kernels, const char* problem);
// `tensors`: query, key, value, out, out_gradient, query_gradient, key_gradient, value_gradient. `lse`: [batch][heads_q][seq_q], natural logarithm.
TILEWRIGHT_BENCH_API void* tilewright_bench_call_backward(void* kernels, const char* problem, const TilewrightBenchTensor* tensors, float* lse, void* workspace);
TILEWRIGHT_BENCH_API int tilewright_bench_launch_backward(void* device, void* call, void* stream);

// Asynchronous on `stream`.
TILEWRIGHT_BENCH_API int tilewright_bench_launch(void* device, void* call, void* stream);
