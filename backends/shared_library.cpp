// dlopen and dlsym, with the reason of a failure.
#include "backends/shared_library.h"

#include <dlfcn.h>
#include <link.h>

namespace tilewright {

Result<SharedLibrary> SharedLibrary::open(const std::string& name) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle) {
        link_map* map = nullptr;
        bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name && *map->l_name;
        return SharedLibrary(handle, known ? map->l_name : name);
    }
    const char* reason = dlerror();
    return Status(StatusCode::unavailable, reason ? reason : name + " could not be opened");
}

SharedLibrary::~SharedLibrary() {
    if (handle_) dlclose(handle_);
}

SharedLibrary& SharedLibrary::operator=(SharedLibrary&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(path_, other.path_);
    return *this;
}

void* SharedLibrary::find(const char* symbol) const { return handle_ ? dlsym(handle_, symbol) : nullptr; }

}  // namespace tilewright
