// Compiles and loads what spills nothing.
#include "bench/load_kernel.h"

#include "backends/nvidia/nvrtc.h"
#include "backends/registry.h"

namespace tilewright::bench {

Result<std::unique_ptr<Kernel>> load_kernel(Device& device, const KernelSpec& spec) {
    const Arch& arch = device.info().arch;
    TILEWRIGHT_ASSIGN_OR_RETURN(KernelSource source, generate(spec, arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(CodeObject object, nvidia_backend().compile(source, arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(Resources resources, nvidia_backend().inspect(object));
    if (std::string reason = nvidia::reason_to_reject(object.log, resources); !reason.empty()) return Status(StatusCode::unsupported, reason);
    return device.load(object, spec, source);
}

}  // namespace tilewright::bench
