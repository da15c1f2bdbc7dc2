// The only device file that asks which compiler is running: how a device function is declared, how a loop is unrolled.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TILEWRIGHT_DEVICE __device__ __forceinline__
#define TILEWRIGHT_UNROLL _Pragma("unroll")
#elif defined(__HIP__)
#define TILEWRIGHT_DEVICE __attribute__((device, always_inline)) inline
#define TILEWRIGHT_UNROLL _Pragma("unroll")
#else  // the CPU, and the host that shares plain data with the kernels
#define TILEWRIGHT_DEVICE inline __attribute__((always_inline))
#define TILEWRIGHT_UNROLL
#endif
