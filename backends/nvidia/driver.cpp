// Opens the driver's library and puts its errors into words.
#include "backends/nvidia/driver.h"

namespace tilewright::nvidia {
namespace {

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

}  // namespace

Driver::Driver(SharedLibrary library) : library_(std::move(library)) {
    for (Status bound : {library_.bind("cuGetErrorName", error_name_), library_.bind("cuGetErrorString", error_text_)})
        if (!bound.ok()) missing_ = bound;
}

Result<std::unique_ptr<Driver>> Driver::open(const std::string& name) {
    auto library = SharedLibrary::open(name);
    if (!library.ok()) return Status(StatusCode::unavailable, "NVIDIA's driver is not installed: " + library.status().message());
    std::unique_ptr<Driver> driver(new Driver(*std::move(library)));
    auto unavailable = [](const std::string& message) { return Status(StatusCode::unavailable, message); };
    if (!driver->missing_.ok()) return unavailable("NVIDIA's driver is too old: " + driver->missing_.message());
    if (Status status = driver->init(0u); !status.ok()) return unavailable("NVIDIA's driver does not start: " + status.message());
    if (Status status = driver->get_version(&driver->version_); !status.ok()) return unavailable(status.message());
    if (driver->version_ < oldest_driver)
        return unavailable("NVIDIA's driver is for CUDA " + version_text(driver->version_) + "; " + version_text(oldest_driver) + " or newer is needed");
    return driver;
}

Status Driver::failure(const char* call, int result) const {
    const char *error = nullptr, *text = nullptr;  // null stays where the driver does not know the number either
    bool named = error_name_(result, &error) == 0 && error_text_(result, &text) == 0 && error && text;
    std::string message = std::string(call) + ": " + (named ? std::string(error) + " (" + text + ")" : "CUDA error " + std::to_string(result));
    return {StatusCode::runtime, std::move(message)};
}

}  // namespace tilewright::nvidia
