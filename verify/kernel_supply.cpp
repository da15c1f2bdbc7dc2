// Kernels compiled for the cases.
#include "verify/kernel_supply.h"

namespace tilewright {

Result<ReadyOperation> supply(KernelSupply& from, const Arch& arch, const Problem& problem, const Config& config, const CallTraits& traits) {
    ReadyOperation ready;
    TILEWRIGHT_ASSIGN_OR_RETURN(ready.plan, plan_operation(problem, config, arch, traits));
    for (const KernelSpec& spec : ready.plan.kernels) {
        TILEWRIGHT_ASSIGN_OR_RETURN(Kernel * kernel, from.kernel(spec));
        ready.kernels.push_back(kernel);
    }
    return ready;
}

CompiledKernels::Built CompiledKernels::build(const KernelSpec& spec, const KernelSource& source) {
    Result<CodeObject> object = backend_.compile(source, device_.info().arch);
    if (!object.ok()) return std::make_shared<Result<std::unique_ptr<Kernel>>>(object.status());
    return std::make_shared<Result<std::unique_ptr<Kernel>>>(device_.load(*object, spec, source));
}

Result<Kernel*> CompiledKernels::kernel(const KernelSpec& spec) {
    TILEWRIGHT_ASSIGN_OR_RETURN(KernelSource source, generate(spec, device_.info().arch));
    std::promise<Built> promise;
    std::shared_future<Built> built;
    bool first = false;
    {
        std::lock_guard lock(mutex_);
        auto [entry, inserted] = built_.try_emplace(source.text);
        if (inserted) entry->second = promise.get_future().share();
        built = entry->second, first = inserted;
    }
    if (first) promise.set_value(build(spec, source));
    const Result<std::unique_ptr<Kernel>>& result = *built.get();
    if (!result.ok()) return result.status();
    return result->get();
}

int CompiledKernels::compiled() const {
    std::lock_guard lock(mutex_);
    return int(built_.size());
}

}  // namespace tilewright
