// The backend that is always there.
#include "backends/cpu/cpu_compiler.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_features.h"
#include "backends/registry.h"

namespace tilewright {
namespace {

class CpuBackend : public Backend {
public:
    const char* name() const override { return "cpu"; }
    Result<std::string> toolchain() override { return cpu_toolchain(); }
    Result<CodeObject> compile(const KernelSource& source, const Arch& arch) override { return compile_for_cpu(source, arch); }
    Result<Resources> inspect(const CodeObject& object) override { return inspect_cpu_object(object); }
    Result<std::vector<DeviceInfo>> devices() override {
        const Arch* arch = find_arch("cpu");
        if (!arch) return Status(StatusCode::internal, "the architecture table has no row for the CPU");
        return std::vector<DeviceInfo>{{"cpu:0", cpu_features().name, *arch, "system compiler"}};
    }
    Result<std::unique_ptr<Device>> open(int index) override {
        if (index != 0) return Status(StatusCode::not_found, "there is no cpu:" + std::to_string(index) + "; the processor is cpu:0");
        return open_cpu();
    }
};

}  // namespace

Backend& cpu_backend() {
    static CpuBackend backend;
    return backend;
}

}  // namespace tilewright
