// Opens NVRTC and compiles with it.
#include "backends/nvidia/nvrtc.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "backends/nvidia/nvrtc_library.h"
#include "backends/shared_library.h"

namespace tilewright::nvidia {
namespace {

// C++20 because the kernels are; -default-device because their constexpr functions are used on both sides.
std::vector<const char*> flags() {
    std::vector<const char*> all{"--std=c++20", "-default-device", "--ptxas-options=-v"};
    // kernels/tile/target.h; with lines of the source for its reports.
    if (getenv("TILEWRIGHT_FOR_RACECHECK")) all.insert(all.end(), {"-DTILEWRIGHT_FOR_RACECHECK=1", "--generate-line-info"});
    return all;
}

using Program = struct NvrtcProgram*;  // NVRTC's opaque handle

// The functions of nvrtc.h that are used; a result of 0 is success.
struct Nvrtc {
    SharedLibrary library;
    int version = 0;
    int (*get_version)(int* major, int* minor) = nullptr;
    const char* (*error_text)(int result) = nullptr;
    int (*create)(Program*, const char* text, const char* name, int headers, const char* const*, const char* const*) = nullptr;
    int (*destroy)(Program*) = nullptr;
    int (*compile)(Program, int count, const char* const* options) = nullptr;
    int (*log_size)(Program, size_t*) = nullptr;
    int (*log)(Program, char*) = nullptr;
    int (*cubin_size)(Program, size_t*) = nullptr;
    int (*cubin)(Program, char*) = nullptr;

    Status bind() {
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvrtcVersion", get_version));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvrtcGetErrorString", error_text));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvrtcCreateProgram", create));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvrtcDestroyProgram", destroy));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvrtcCompileProgram", compile));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvrtcGetProgramLogSize", log_size));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvrtcGetProgramLog", log));
        TILEWRIGHT_RETURN_IF_ERROR(library.bind("nvrtcGetCUBINSize", cubin_size));
        return library.bind("nvrtcGetCUBIN", cubin);
    }
    Status check(int result, const char* call) const {
        if (result == 0) return {};
        return {StatusCode::runtime, std::string(call) + ": " + error_text(result)};
    }
};

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

Result<std::unique_ptr<Nvrtc>> open_candidate(const std::string& name) {
    auto nvrtc = std::make_unique<Nvrtc>();
    TILEWRIGHT_ASSIGN_OR_RETURN(nvrtc->library, SharedLibrary::open(name));
    TILEWRIGHT_RETURN_IF_ERROR(nvrtc->bind());
    int major = 0, minor = 0;
    TILEWRIGHT_RETURN_IF_ERROR(nvrtc->check(nvrtc->get_version(&major, &minor), "nvrtcVersion"));
    nvrtc->version = 1000 * major + 10 * minor;
    if (nvrtc->version < oldest_nvrtc)
        return Status(StatusCode::unavailable, name + " is version " + version_text(nvrtc->version) + ", older than " + version_text(oldest_nvrtc));
    return nvrtc;
}

Result<std::unique_ptr<Nvrtc>> open_first() {
    std::string refused;
    for (const std::string& name : nvrtc_candidates()) {
        auto nvrtc = open_candidate(name);
        if (nvrtc.ok()) return nvrtc;
        refused += "; " + nvrtc.status().message();
    }
    return Status(StatusCode::unavailable, "NVRTC (libnvrtc.so.12 or .13, version " + version_text(oldest_nvrtc) +
                                               " or newer) was not found: set CUDA_HOME to a CUDA toolkit" + refused);
}

// Stays open for the life of the process: compiler threads may outlive static destructors.
const Result<std::unique_ptr<Nvrtc>>& opened() {
    static const auto& nvrtc = *new Result<std::unique_ptr<Nvrtc>>(open_first());
    return nvrtc;
}

struct ProgramGuard {
    const Nvrtc& nvrtc;
    Program program = nullptr;
    ~ProgramGuard() {
        if (program) nvrtc.destroy(&program);
    }
};

using SizeOf = int (*)(Program, size_t*);
using Read = int (*)(Program, char*);
Result<std::string> read_all(const Nvrtc& nvrtc, Program program, SizeOf size_of, Read read, const char* call) {
    size_t size = 0;
    TILEWRIGHT_RETURN_IF_ERROR(nvrtc.check(size_of(program, &size), call));
    std::string bytes(size, '\0');
    TILEWRIGHT_RETURN_IF_ERROR(nvrtc.check(read(program, bytes.data()), call));
    return bytes;
}

}  // namespace

Result<NvrtcInfo> nvrtc_info() {
    if (!opened().ok()) return opened().status();
    const Nvrtc& nvrtc = **opened();
    NvrtcInfo info{nvrtc.library.path(), nvrtc.version, ""};
    for (const char* flag : flags()) info.flags.append(info.flags.empty() ? "" : " ").append(flag);
    return info;
}

Result<CodeObject> nvrtc_compile(const std::string& text, const std::string& arch) {
    if (!opened().ok()) return opened().status();
    const Nvrtc& nvrtc = **opened();
    ProgramGuard guard{nvrtc};
    TILEWRIGHT_RETURN_IF_ERROR(nvrtc.check(nvrtc.create(&guard.program, text.c_str(), "tilewright.cu", 0, nullptr, nullptr), "nvrtcCreateProgram"));
    std::string target = "--gpu-architecture=" + arch;
    std::vector<const char*> options = flags();
    options.push_back(target.c_str());
    int result = nvrtc.compile(guard.program, static_cast<int>(options.size()), options.data());
    CodeObject object;
    object.arch = arch;
    TILEWRIGHT_ASSIGN_OR_RETURN(object.log, read_all(nvrtc, guard.program, nvrtc.log_size, nvrtc.log, "nvrtcGetProgramLog"));
    object.log.resize(object.log.find_last_not_of(std::string("\0\n ", 3)) + 1);
    if (result != 0) return Status(StatusCode::compile, std::string(nvrtc.error_text(result)) + " for " + arch + ":\n" + object.log);
    TILEWRIGHT_ASSIGN_OR_RETURN(object.bytes, read_all(nvrtc, guard.program, nvrtc.cubin_size, nvrtc.cubin, "nvrtcGetCUBIN"));
    if (object.bytes.empty()) return Status(StatusCode::compile, "no machine code for " + arch + ": it names no real architecture");
    return object;
}

int64_t spilled_bytes(const std::string& log) {
    int64_t most = -1;
    for (const char* label : {" bytes spill stores", " bytes spill loads"})
        for (size_t at = log.find(label); at != log.npos; at = log.find(label, at + 1)) {
            size_t digits = log.find_last_not_of("0123456789", at - 1);
            most = std::max<int64_t>(most, std::atoll(log.c_str() + (digits == log.npos ? 0 : digits + 1)));
        }
    return most;
}

std::string reason_to_reject(const std::string& log, const Resources& resources, int64_t most_spilled_bytes) {
    if (size_t at = log.find("C75"); at != log.npos) {
        size_t begin = log.rfind('\n', at), end = log.find('\n', at);
        begin = begin == log.npos ? 0 : begin + 1;
        return "the assembler says: " + log.substr(begin, end == log.npos ? log.npos : end - begin);
    }
    const std::string limit = "; the limit is " + std::to_string(most_spilled_bytes);
    if (resources.spill_bytes > most_spilled_bytes) return std::to_string(resources.spill_bytes) + " bytes of registers are spilled" + limit;
    if (resources.local_bytes > most_spilled_bytes) return "the stack frame has " + std::to_string(resources.local_bytes) + " bytes" + limit;
    return "";
}

}  // namespace tilewright::nvidia
