// hipRTC, AMD's run-time compiler, opened with dlopen. Only what has not changed from ROCm 5.2 to 7 is declared.
#pragma once
#include <string>
#include <vector>

#include "tilewright/status.h"

namespace tilewright::amd {

struct HiprtcOutput {
    std::string object;
    std::string log;
};

// The library is TILEWRIGHT_HIPRTC_LIBRARY, else libhiprtc.so or libamdhip64.so (which held hipRTC before ROCm 6) of ROCM_PATH,
// the loader's path or /opt/rocm. All functions: unavailable, with the reason, if there is none. Thread-safe.
Result<std::string> hiprtc_version();  // "hipRTC 6.2"
// compile: the log.
Result<HiprtcOutput> hiprtc_compile(const std::string& text, const std::string& name, const std::vector<std::string>& options);

}  // namespace tilewright::amd
