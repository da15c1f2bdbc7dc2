// The Backend interface: which compiler, which devices.
#include "backends/amd/amd_backend.h"

#include <mutex>
#include <optional>

#include "backends/amd/amd_device.h"
#include "backends/amd/compiler.h"
#include "backends/amd/inspect.h"

namespace tilewright {
namespace amd {
namespace {

class AmdBackend : public Backend {
public:
    explicit AmdBackend(std::string hip_library) : hip_library_(std::move(hip_library)) {}
    const char* name() const override { return "amd"; }

    Result<std::string> toolchain() override {
        if (!compiler().ok()) return compiler().status();
        std::string text = compiler()->version;
        for (const std::string& flag : compiler_flags()) text += " " + flag;
        return text;
    }
    Result<CodeObject> compile(const KernelSource& source, const Arch& arch) override {
        if (arch.backend != name()) return invalid_argument("'" + arch.name + "' is no architecture of AMD");
        if (!compiler().ok()) return compiler().status();
        return amd::compile(*compiler(), source, arch);
    }
    Result<Resources> inspect(const CodeObject& object) override { return amd::inspect(object); }

    Result<std::vector<DeviceInfo>> devices() override {
        TILEWRIGHT_ASSIGN_OR_RETURN(const Hip* hip, opened());
        std::vector<DeviceInfo> found;
        Status first_refusal;
        for (int index = 0; index < count_; ++index) {
            Result<DeviceInfo> info = describe_device(*hip, index);
            if (info.ok())
                found.push_back(*std::move(info));
            else if (first_refusal.ok())
                first_refusal = info.status();
        }
        if (found.empty()) return Status(StatusCode::unavailable, first_refusal.message());
        return found;
    }
    Result<std::unique_ptr<Device>> open(int index) override {
        TILEWRIGHT_ASSIGN_OR_RETURN(const Hip* hip, opened());
        if (index < 0 || index >= count_)
            return Status(StatusCode::not_found, "there is no device amd:" + std::to_string(index) + "; HIP reports " + std::to_string(count_));
        return open_device(*hip, index);
    }

private:
    // The runtime with at least one device. A failure is remembered too: devices do not appear while a process runs.
    Result<const Hip*> opened() {
        std::lock_guard lock(mutex_);
        if (!hip_) hip_.emplace(Hip::open(hip_library_)), state_ = hip_->ok() ? start(**hip_) : hip_->status();
        if (!state_.ok()) return state_;
        return &**hip_;
    }
    Status start(const Hip& hip) {
        Status none(StatusCode::unavailable, "the HIP runtime is installed, but it reports no device");
        int result = hip.Init(0);
        if (result == 0) result = hip.GetDeviceCount(&count_);
        if (result == error_no_device) return none;
        if (Status status = hip.check("hipGetDeviceCount", result); !status.ok()) return {StatusCode::unavailable, status.message()};
        return count_ > 0 ? Status() : none;
    }

    const std::string hip_library_;
    std::mutex mutex_;
    std::optional<Result<Hip>> hip_;
    Status state_;
    int count_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_backend(std::string hip_library) { return std::make_unique<AmdBackend>(std::move(hip_library)); }

}  // namespace amd

Backend& amd_backend() {
    static amd::AmdBackend backend("");
    return backend;
}

}  // namespace tilewright
