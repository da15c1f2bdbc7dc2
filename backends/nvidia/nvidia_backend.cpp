// Joins the compiler, the cubin reader and the driver.
#include "backends/nvidia/nvidia_backend.h"

#include <cstdlib>
#include <mutex>

#include "backends/nvidia/cubin.h"
#include "backends/nvidia/device_arch.h"
#include "backends/nvidia/driver.h"
#include "backends/nvidia/nvidia_device.h"
#include "backends/nvidia/nvrtc.h"

namespace tilewright {
namespace nvidia {
namespace {

class NvidiaBackend : public Backend {
public:
    explicit NvidiaBackend(std::string library) : library_(std::move(library)) {}
    const char* name() const override { return "nvidia"; }

    Result<std::string> toolchain() override {
        TILEWRIGHT_ASSIGN_OR_RETURN(NvrtcInfo info, nvrtc_info());
        return "nvrtc " + std::to_string(info.version / 1000) + "." + std::to_string(info.version % 1000 / 10) + " " + info.flags;
    }

    Result<CodeObject> compile(const KernelSource& source, const Arch& arch) override {
        if (arch.backend != "nvidia") return invalid_argument(arch.name + " is no architecture of NVIDIA's");
        return nvrtc_compile(source.text, arch.name);
    }

    Result<Resources> inspect(const CodeObject& object) override {
        TILEWRIGHT_ASSIGN_OR_RETURN(std::vector<CubinKernel> kernels, read_cubin(object.bytes));
        const CubinKernel& kernel = kernels.front();  // a KernelSource has one
        Resources resources;
        resources.registers = kernel.registers;
        resources.shared_bytes = kernel.shared_bytes;
        resources.local_bytes = kernel.local_bytes;
        // Spills lie in the stack frame, which the file tells; how many of its bytes they are, the log alone.
        resources.spill_bytes = kernel.local_bytes == 0 ? 0 : spilled_bytes(object.log);
        resources.matrix_instructions = 0;
        resources.instructions = kernel.instructions;
        for (const Opcode& opcode : opcodes())
            for (const auto& [group, count] : kernel.instructions)
                if (opcode.matrix && group == opcode.name) resources.matrix_instructions += count;
        return resources;
    }

    Result<std::vector<DeviceInfo>> devices() override {
        TILEWRIGHT_ASSIGN_OR_RETURN(const Driver* opened, driver());
        int count = 0;
        TILEWRIGHT_RETURN_IF_ERROR(opened->device_count(&count));
        std::vector<DeviceInfo> found;
        for (int i = 0; i < count; ++i) {
            TILEWRIGHT_ASSIGN_OR_RETURN(DeviceInfo info, describe_device(*opened, i));
            found.push_back(std::move(info));
        }
        return found;
    }

    Result<std::unique_ptr<Device>> open(int index) override {
        TILEWRIGHT_ASSIGN_OR_RETURN(const Driver* opened, driver());
        int count = 0;
        TILEWRIGHT_RETURN_IF_ERROR(opened->device_count(&count));
        if (index < 0 || index >= count)
            return Status(StatusCode::not_found, "there is no nvidia:" + std::to_string(index) + "; the driver has " + std::to_string(count) + " devices");
        return open_device(*opened, index);
    }

private:
    Result<const Driver*> driver() {
        std::lock_guard lock(mutex_);
        if (!driver_) {
            const char* named = std::getenv("TILEWRIGHT_CUDA_LIBRARY");
            driver_.emplace(Driver::open(!library_.empty() ? library_ : named && *named ? named : "libcuda.so.1"));
        }
        if (!driver_->ok()) return driver_->status();
        return (**driver_).get();
    }

    const std::string library_;
    std::mutex mutex_;
    std::optional<Result<std::unique_ptr<Driver>>> driver_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(std::string cuda_library) { return std::make_unique<NvidiaBackend>(std::move(cuda_library)); }

}  // namespace nvidia

// Never destroyed: threads that use it may outlive static destructors.
Backend& nvidia_backend() {
    static Backend& backend = *nvidia::make_backend("").release();
    return backend;
}

}  // namespace tilewright
