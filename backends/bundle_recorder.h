// A device that runs nothing: what is allocated, copied and launched on it becomes a bundle.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "backends/bundle.h"

namespace tilewright {

// Code that prepares a launch on a real device prepares a bundle with this one. Results are what was copied in, never computed.
// Not thread-safe.
class BundleRecorder : public Device {
public:
    // `backend` inspects what is loaded, and must outlive this. `toolchain`: for people.
    BundleRecorder(Backend& backend, const Arch& arch, std::string toolchain);
    const DeviceInfo& info() const override { return info_; }

    Result<void*> allocate(int64_t bytes) override;
    Status free(void* address) override;
    Status copy_to_device(void* to, const void* from, int64_t bytes) override;
    Status copy_to_host(void* to, const void* from, int64_t bytes) override;
    Status fill(void* to, unsigned char value, int64_t bytes) override;
    Result<std::unique_ptr<Kernel>> load(const CodeObject& object, const KernelSpec& spec, const KernelSource& source) override;
    // Adds this launch to the bundle. Buffers are as they were at the first launch that points into them. Pointers must be null or lie in what was
    // allocated here. invalid_argument: one does not, or there is nothing to launch.
    Status launch(Kernel& kernel, const kernel::ForwardParameters& parameters, void* stream) override;
    Status launch(Kernel& kernel, const kernel::DecodeParameters& parameters, void* stream) override;    // unsupported: tensor maps
    Status launch(Kernel& kernel, const kernel::BackwardParameters& parameters, void* stream) override;  // unsupported: tensor maps
    Status synchronize() override { return {}; }
    Result<std::vector<double>> time_us(int, const std::function<Status()>&, const std::function<Status()>&) override;
    Result<int> resident_blocks(Kernel& kernel) override;

    // All launches so far; without expectations, which only the caller can know. Empty before the first.
    std::optional<Bundle>& bundle() { return bundle_; }
    // Where `address` lies: the name of the bundle's buffer and the byte in it. not_found: in none.
    Result<std::pair<std::string, int64_t>> place(const void* address) const;

private:
    struct Allocation {
        std::unique_ptr<unsigned char[]> memory;
        int64_t bytes = 0;
        std::string name;  // in the bundle; empty: no argument points into it
        unsigned char* begin() const { return memory.get(); }
    };
    const Allocation* find(const void* address) const;
    Status begin_launch(const Kernel& kernel, const void* parameters);
    Status end_launch();
    void name_buffers(const KernelSpec& spec, const void* parameters);
    void add_fields(const KernelSpec& spec, const void* parameters, int64_t base);
    void add_maps(const KernelSpec& spec, const kernel::ForwardParameters& parameters);

    Backend& backend_;
    DeviceInfo info_;
    std::string toolchain_;
    std::vector<Allocation> allocations_;
    std::optional<Bundle> bundle_;
    BundleLaunch launch_;  // under construction
};

}  // namespace tilewright
