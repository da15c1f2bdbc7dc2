// The few hipRTC calls that turn text into a code object.
#include "backends/amd/hiprtc.h"

#include <memory>

#include "backends/amd/rocm_library.h"

namespace tilewright::amd {
namespace {

// The C interface of hipRTC. A program is opaque, a result an int whose zero is success.
struct Hiprtc {
    SharedLibrary library;
    int (*version)(int* major, int* minor) = nullptr;
    const char* (*error_text)(int result) = nullptr;
    int (*create)(void** program, const char* text, const char* name, int headers, const char* const* contents, const char* const* names) = nullptr;
    int (*compile)(void* program, int options, const char* const* texts) = nullptr;
    int (*destroy)(void** program) = nullptr;
    int (*log_size)(void* program, size_t* bytes) = nullptr;
    int (*log)(void* program, char* text) = nullptr;
    int (*code_size)(void* program, size_t* bytes) = nullptr;
    int (*code)(void* program, char* bytes) = nullptr;
};

Result<Hiprtc> open() {
    TILEWRIGHT_ASSIGN_OR_RETURN(SharedLibrary library, open_rocm_library("TILEWRIGHT_HIPRTC_LIBRARY", {"libhiprtc.so", "libamdhip64.so"}));
    Hiprtc api;
    api.library = std::move(library);
    TILEWRIGHT_RETURN_IF_ERROR(api.library.bind("hiprtcVersion", api.version));
    TILEWRIGHT_RETURN_IF_ERROR(api.library.bind("hiprtcGetErrorString", api.error_text));
    TILEWRIGHT_RETURN_IF_ERROR(api.library.bind("hiprtcCreateProgram", api.create));
    TILEWRIGHT_RETURN_IF_ERROR(api.library.bind("hiprtcCompileProgram", api.compile));
    TILEWRIGHT_RETURN_IF_ERROR(api.library.bind("hiprtcDestroyProgram", api.destroy));
    TILEWRIGHT_RETURN_IF_ERROR(api.library.bind("hiprtcGetProgramLogSize", api.log_size));
    TILEWRIGHT_RETURN_IF_ERROR(api.library.bind("hiprtcGetProgramLog", api.log));
    TILEWRIGHT_RETURN_IF_ERROR(api.library.bind("hiprtcGetCodeSize", api.code_size));
    TILEWRIGHT_RETURN_IF_ERROR(api.library.bind("hiprtcGetCode", api.code));
    return api;
}

// Opened once and never closed: ROCm's libraries keep threads.
const Result<Hiprtc>& hiprtc() {
    static const auto* opened = new Result<Hiprtc>(open());
    return *opened;
}

Status failure(const Hiprtc& api, const char* call, int result, StatusCode code = StatusCode::runtime) {
    const char* text = api.error_text(result);
    return {code, std::string(call) + " failed: " + (text ? text : "error " + std::to_string(result))};
}

std::string read_log(const Hiprtc& api, void* program) {
    size_t size = 0;
    if (api.log_size(program, &size) != 0 || size <= 1) return "";
    std::string log(size, '\0');
    if (api.log(program, log.data()) != 0) return "";
    log.resize(log.find_last_not_of('\0') + 1);  // the size counts the closing zero
    return log;
}

}  // namespace

Result<std::string> hiprtc_version() {
    if (!hiprtc().ok()) return hiprtc().status();
    const Hiprtc& api = *hiprtc();
    int major = 0, minor = 0;
    if (int result = api.version(&major, &minor)) return failure(api, "hiprtcVersion", result);
    return "hipRTC " + std::to_string(major) + "." + std::to_string(minor);
}

Result<HiprtcOutput> hiprtc_compile(const std::string& text, const std::string& name, const std::vector<std::string>& options) {
    if (!hiprtc().ok()) return hiprtc().status();
    const Hiprtc& api = *hiprtc();
    void* raw = nullptr;
    if (int result = api.create(&raw, text.c_str(), name.c_str(), 0, nullptr, nullptr)) return failure(api, "hiprtcCreateProgram", result);
    auto destroy = [&](void* program) { api.destroy(&program); };
    std::unique_ptr<void, decltype(destroy)> program(raw, destroy);

    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());
    int compiled = api.compile(raw, static_cast<int>(texts.size()), texts.data());
    HiprtcOutput output;
    output.log = read_log(api, raw);
    if (compiled != 0) return Status(StatusCode::compile, failure(api, "hiprtcCompileProgram", compiled).message() + "\n" + output.log);

    size_t size = 0;
    if (int result = api.code_size(raw, &size)) return failure(api, "hiprtcGetCodeSize", result);
    output.object.resize(size);
    if (int result = api.code(raw, output.object.data())) return failure(api, "hiprtcGetCode", result);
    return output;
}

}  // namespace tilewright::amd
