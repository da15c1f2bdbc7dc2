// CUDA's builtins, for kernels that run on the emulated multiprocessor. Include it before them.
#pragma once
#include <cmath>

#include "machine.h"

namespace tilewright::emulated::gpu {

struct ThreadIndex {
    struct X {
        operator unsigned() const { return (unsigned)thread(); }
    } x;
};
struct BlockIndex {
    struct X {
        operator unsigned() const { return (unsigned)block_index(); }
    } x;
};
struct GridSize {
    struct X {
        operator unsigned() const { return (unsigned)block_count(); }
    } x;
};

}  // namespace tilewright::emulated::gpu

inline constexpr tilewright::emulated::gpu::ThreadIndex threadIdx{};
inline constexpr tilewright::emulated::gpu::BlockIndex blockIdx{};
inline constexpr tilewright::emulated::gpu::GridSize gridDim{};

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
using std::fmaxf;
inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }

template <class T>
T __shfl_sync(unsigned, T x, int from) {
    return tilewright::emulated::gpu::from_lane("shfl", x, from);
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int other) {
    return tilewright::emulated::gpu::from_lane("shfl", x, tilewright::emulated::gpu::lane() ^ other);
}
template <class T>
T __shfl_up_sync(unsigned, T x, int distance) {
    int own = tilewright::emulated::gpu::lane();
    return tilewright::emulated::gpu::from_lane("shfl", x, own < distance ? own : own - distance);
}
inline bool __any_sync(unsigned, bool x) { return tilewright::emulated::gpu::ballot(x) != 0; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __ballot_sync(unsigned, bool x) { return tilewright::emulated::gpu::ballot(x); }
inline int __reduce_add_sync(unsigned, int x) {
    return tilewright::emulated::gpu::collective<int>("redux", x, [](auto in, auto out) {
        int sum = 0;
        for (int l = 0; l < 32; ++l) sum += in(l);
        for (int l = 0; l < 32; ++l) out(l) = sum;
    });
}
inline void __syncwarp() { tilewright::emulated::gpu::sync_warp(); }
inline void __syncthreads() { tilewright::emulated::gpu::sync_block(); }
inline bool __syncthreads_or(bool x) { return tilewright::emulated::gpu::sync_block(x); }

template <class T>
T __ldcg(const T* from) {
    return *from;
}
inline unsigned atomicInc(unsigned* counter, unsigned last) {
    tilewright::emulated::gpu::pause();
    unsigned before = *counter;
    *counter = before >= last ? 0 : before + 1;
    return before;
}
inline void atomicMin(unsigned* word, unsigned x) {
    if (x < *word) *word = x;
}
inline void* __cvta_shared_to_generic(unsigned address) { return tilewright::emulated::gpu::shared_pointer(address); }
