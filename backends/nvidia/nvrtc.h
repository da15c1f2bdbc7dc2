// NVIDIA's run-time compiler, opened with dlopen: CUDA C++ text to a cubin, without a device and without CUDA's headers.
#pragma once
#include <string>

#include "backends/backend.h"

namespace tilewright::nvidia {

constexpr int oldest_nvrtc = 12040;  // 1000 * major + 10 * minor

struct NvrtcInfo {
    std::string path;
    int version = 0;    // 1000 * major + 10 * minor
    std::string flags;  // as passed to every compilation, but for the architecture
};

// The library is looked for once, in this order: the file TILEWRIGHT_NVRTC_LIBRARY; the library folders of CUDA_HOME and
// CUDA_PATH; the loader's path; /usr/local/cuda*; the folders nvidia/*/lib of the Python installations in VIRTUAL_ENV,
// CONDA_PREFIX, of the python3 in PATH, of /usr, /usr/local and ~/.local. The first that is new enough serves.
// unavailable, naming what was tried, if there is none. Thread-safe.
Result<NvrtcInfo> nvrtc_info();

// Device code of `text` for `arch` ("sm_80", "sm_90a"), with the assembler's remarks on registers and spills in the log.
// compile, with the compiler's own text, if it does not compile. Thread-safe, and calls run in parallel.
Result<CodeObject> nvrtc_compile(const std::string& text, const std::string& arch);

// Bytes that the assembler spilled, the larger of stores and loads, from its log; -1: the log does not say.
int64_t spilled_bytes(const std::string& log);

// Why a compiled candidate is not worth running, in one sentence; empty if it is. Spills, a stack frame, and matrix products that the
// assembler has serialised (its messages C75xx) cost a factor of two or more; spills and frame may have `most_spilled_bytes` a lane.
std::string reason_to_reject(const std::string& log, const Resources& resources, int64_t most_spilled_bytes = 0);
// What a candidate may spill, in bytes a lane: four registers, which are measured rather than judged.
constexpr int64_t candidates_spill_bytes = 16;

}  // namespace tilewright::nvidia
