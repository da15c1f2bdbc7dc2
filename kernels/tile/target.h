// The only device file that asks which compiler is running: how a device function is declared, how a loop is unrolled.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TILEWRIGHT_DEVICE __device__ __forceinline__
#define TILEWRIGHT_UNROLL _Pragma("unroll")
#elif defined(__HIP__)
#define TILEWRIGHT_DEVICE __attribute__((device, always_inline)) inline
#define TILEWRIGHT_UNROLL _Pragma("unroll")
#define TILEWRIGHT_FORGET(x) asm("" : "+v"(x))
#define TILEWRIGHT_FORGET_SCALAR(x) asm("" : "+s"(x))
#ifdef __AMDGCN__  // not where the same unit is compiled for the host
#define TILEWRIGHT_GLOBAL __attribute__((address_space(1)))
#endif
#else  // the CPU, and the host that shares plain data with the kernels
#define TILEWRIGHT_DEVICE inline __attribute__((always_inline))
#define TILEWRIGHT_UNROLL
#endif

// Kernels for racecheck of compute-sanitizer (scripts/sanitize_nvidia.sh), which does not follow all that orders the others.
#ifndef TILEWRIGHT_FOR_RACECHECK
#define TILEWRIGHT_FOR_RACECHECK 0
#endif

// AMD: the compiler forgets what the integer x came from, so that what follows from it is computed again where it is needed,
// and not carried in registers from one end of the kernel to the other. A scalar is the same in all lanes.
#ifndef TILEWRIGHT_FORGET
#define TILEWRIGHT_FORGET(x) (void)(x)
#define TILEWRIGHT_FORGET_SCALAR(x) (void)(x)
#endif

// AMD: of what a pointer points to, that it is global memory. Of a pointer that is read from memory the compiler does not know it, and must suppose that
// what lies there differs from lane to lane.
#ifndef TILEWRIGHT_GLOBAL
#define TILEWRIGHT_GLOBAL
#endif
