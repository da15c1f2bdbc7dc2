// Tries the places where ROCm installs its libraries.
#include "backends/amd/rocm_library.h"

#include <cstdlib>

namespace tilewright::amd {

Result<SharedLibrary> open_rocm_library(const char* variable, const std::vector<std::string>& names) {
    if (const char* file = getenv(variable); file && *file) return SharedLibrary::open(file);
    std::vector<std::string> folders;
    if (const char* rocm = getenv("ROCM_PATH"); rocm && *rocm) folders.push_back(std::string(rocm) + "/lib/");
    folders.push_back(""), folders.push_back("/opt/rocm/lib/");
    for (const std::string& folder : folders)
        for (const std::string& name : names) {
            Result<SharedLibrary> library = SharedLibrary::open(folder + name);
            if (library.ok()) return library;
        }
    return Status(StatusCode::unavailable, names[0] + " is neither in the loader's path nor in ROCM_PATH nor in /opt/rocm/lib");
}

}  // namespace tilewright::amd
