// Where the cases get their kernels from.
#pragma once
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/operation_plan.h"

namespace tilewright {

class KernelSupply {
public:
    virtual ~KernelSupply() = default;
    // A kernel of this spec on the supply's device; it belongs to the supply and lives as long. Thread-safe.
    // unsupported: the device cannot run this config on this problem. compile, runtime: it should, but something failed.
    virtual Result<Kernel*> kernel(const KernelSpec& spec) = 0;
};

// All kernels of an operation.
Result<ReadyOperation> supply(KernelSupply& supply, const Arch& arch, const Problem& problem, const Config& config, const CallTraits& traits);

// Generates, compiles and loads; every text once, however many threads ask.
class CompiledKernels : public KernelSupply {
public:
    // Both must outlive this.
    CompiledKernels(Backend& backend, Device& device) : backend_(backend), device_(device) {}
    Result<Kernel*> kernel(const KernelSpec& spec) override;
    int compiled() const;  // kernels so far

private:
    using Built = std::shared_ptr<Result<std::unique_ptr<Kernel>>>;
    Built build(const KernelSpec& spec, const KernelSource& source);

    Backend& backend_;
    Device& device_;
    mutable std::mutex mutex_;
    std::map<std::string, std::shared_future<Built>> built_;  // by text
};

}  // namespace tilewright
