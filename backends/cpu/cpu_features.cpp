// Asks the processor what it can do.
#include "backends/cpu/cpu_features.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace tilewright {
namespace {

CpuFeatures read_features() {
    CpuFeatures features;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        features.vector_floats = 16;
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        features.vector_floats = 8;
    features.bf16_dot = features.vector_floats == 16 && __builtin_cpu_supports("avx512bf16");
#endif
    if (const char* forced = std::getenv("TILEWRIGHT_CPU_VECTOR_FLOATS")) {
        int floats = std::atoi(forced);
        if ((floats == 4 || floats == 8) && floats < features.vector_floats) features.vector_floats = floats, features.bf16_dot = false;
    }
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; features.name.empty() && std::getline(info, line);)
        if (line.starts_with("model name")) features.name = line.substr(std::min(line.find(": ") + 2, line.size()));
    if (features.name.empty()) features.name = "unknown processor";
    return features;
}

}  // namespace

const CpuFeatures& cpu_features() {
    static const CpuFeatures features = read_features();
    return features;
}

}  // namespace tilewright
