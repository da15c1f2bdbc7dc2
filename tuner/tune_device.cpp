// Finding devices and their toolchains.
#include "tuner/tune_device.h"

#include <algorithm>

#include "tuner/device_tasks.h"
#include "tuner/seeds.h"

namespace tilewright {

Result<TuneDevice> find_tune_device(const std::string& id) {
    TuneDevice device;
    TILEWRIGHT_ASSIGN_OR_RETURN(device.info, find_device(id));
    TILEWRIGHT_ASSIGN_OR_RETURN(Backend* const backend, find_backend(device.info.arch.backend));
    TILEWRIGHT_ASSIGN_OR_RETURN(device.toolchain, toolchain_of(*backend));
    return device;
}

Result<std::vector<TuneDevice>> find_tune_devices(const std::string& list) {
    std::vector<std::string> ids;
    if (list == "all") {
        for (const char* backend_name : {"nvidia", "amd"}) {
            const Result<Backend*> backend = find_backend(backend_name);
            if (!backend.ok()) continue;
            const auto found = (*backend)->devices();
            if (!found.ok()) continue;  // no driver
            for (const DeviceInfo& info : *found) ids.push_back(info.id);
        }
        if (ids.empty()) ids.push_back("cpu:0");
    } else {
        for (size_t begin = 0; begin <= list.size();) {
            const size_t end = std::min(list.find(',', begin), list.size());
            std::string id = list.substr(begin, end - begin);
            if (!id.empty() && std::ranges::find(ids, id) == ids.end()) ids.push_back(std::move(id));
            begin = end + 1;
        }
    }
    if (ids.empty()) return invalid_argument("no device given: give one, several with commas between them, or all");
    std::vector<TuneDevice> devices;
    for (const std::string& id : ids) {
        TILEWRIGHT_ASSIGN_OR_RETURN(TuneDevice device, find_tune_device(id));
        if (std::ranges::none_of(devices, [&](const TuneDevice& known) { return known.info.id == device.info.id; })) devices.push_back(std::move(device));
    }
    return devices;
}

}  // namespace tilewright
