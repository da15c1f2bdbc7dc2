// Binds the functions, names errors, and finds a device's architecture.
#include "backends/amd/hip.h"

#include <cctype>
#include <vector>

#include "backends/amd/rocm_library.h"

namespace tilewright::amd {

Result<Hip> Hip::open(const std::string& library) {
    Hip hip;
    TILEWRIGHT_ASSIGN_OR_RETURN(hip.library_, library.empty() ? open_rocm_library("TILEWRIGHT_HIP_LIBRARY", {"libamdhip64.so", "libamdhip64.so.7",
                                                                                                             "libamdhip64.so.6", "libamdhip64.so.5"})
                                                              : SharedLibrary::open(library));
#define TILEWRIGHT_HIP_BIND(name, parameters) TILEWRIGHT_RETURN_IF_ERROR(hip.library_.bind("hip" #name, hip.name));
    TILEWRIGHT_HIP_CALLS(TILEWRIGHT_HIP_BIND)
#undef TILEWRIGHT_HIP_BIND
    TILEWRIGHT_RETURN_IF_ERROR(hip.library_.bind("hipGetErrorName", hip.error_name_));
    TILEWRIGHT_RETURN_IF_ERROR(hip.library_.bind("hipGetErrorString", hip.error_text_));
    // ROCm 6 gave the new struct a new symbol; the old symbol went on filling in the old struct.
    if (!hip.library_.bind("hipGetDevicePropertiesR0600", hip.properties_).ok())
        TILEWRIGHT_RETURN_IF_ERROR(hip.library_.bind("hipGetDeviceProperties", hip.properties_));
    return hip;
}

Status Hip::check(const char* call, int result) const {
    if (result == 0) return {};
    const char* name = error_name_(result);
    const char* text = error_text_(result);
    return {StatusCode::runtime,
            std::string(call) + " failed: " + (name ? name : "error " + std::to_string(result)) + (text ? std::string(" (") + text + ")" : "")};
}

// The properties begin with the product's name; where the architecture's name lies changed with ROCm 6. It is the only text of
// its form, so it is looked for, and no version of the struct has to be known.
Result<std::string> Hip::device_arch(int device) const {
    constexpr size_t name_bytes = 256, more_than_any_version = 1 << 14;
    std::vector<char> properties(more_than_any_version, '\0');
    TILEWRIGHT_RETURN_IF_ERROR(check("hipGetDeviceProperties", properties_(properties.data(), device)));
    std::string_view all(properties.data(), properties.size() - 1);
    for (size_t at = name_bytes; (at = all.find("gfx", at)) != all.npos; at += 3)
        if (isdigit(static_cast<unsigned char>(all[at + 3])) && all[at - 1] == '\0') return std::string(all.data() + at);
    return Status(StatusCode::unsupported, "HIP does not name the architecture of device " + std::to_string(device));
}

}  // namespace tilewright::amd
