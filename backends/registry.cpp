// The backends by name.
#include "backends/registry.h"

#include <charconv>
#include <cstdio>

namespace tilewright {

const std::vector<Backend*>& backends() {
    static const std::vector<Backend*> all = {&cpu_backend(), &nvidia_backend(), &amd_backend()};
    return all;
}

Result<Backend*> find_backend(std::string_view name) {
    for (Backend* backend : backends())
        if (name == backend->name()) return backend;
    return Status(StatusCode::not_found, "unknown backend '" + std::string(name) + "'; known are cpu, nvidia, amd");
}

std::string pci_address(int domain, int bus, int device) {
    char text[32];
    std::snprintf(text, sizeof text, "%08x:%02x:%02x.0", static_cast<unsigned>(domain), static_cast<unsigned>(bus), static_cast<unsigned>(device));
    return text;
}

Result<std::unique_ptr<Device>> open_device(std::string_view id) {
    size_t colon = std::min(id.find(':'), id.size());
    int index = 0;
    if (std::string_view digits = id.substr(std::min(colon + 1, id.size())); colon < id.size()) {
        auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
        if (error != std::errc() || end != digits.data() + digits.size() || index < 0)
            return invalid_argument("'" + std::string(id) + "' is no device; write backend:index, such as cpu:0");
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(Backend * backend, find_backend(id.substr(0, colon)));
    return backend->open(index);
}

}  // namespace tilewright
