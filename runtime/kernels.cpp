// Finds a config that runs, compiles it, remembers it.
#include "runtime/kernels.h"

#include <vector>

#include "model/space.h"

namespace tilewright {
namespace {

int mask_class(const Problem& problem) { return problem.causal() ? 1 : problem.window_left != -1 || problem.window_right != -1 ? 2 : 0; }

struct Candidate {
    std::optional<Config> instead;
    Arch arch;
};
// In the order in which they are tried, one more at each call; nothing where there is no other.
std::optional<Candidate> candidate(int index, const Problem& problem, const Arch& arch) {
    if (index == 0) return Candidate{{}, arch};
    if (index == 1) return Candidate{default_config(problem, arch), arch};
    if (index > 2 || arch.family != Family::sm90) return {};
    Arch older = arch;
    older.family = Family::sm80;
    return Candidate{default_config(problem, older), older};
}

KernelKey key_of_choice(const OperationPlan& wanted) {
    KernelKey key = key_of(wanted.kernels[0]);
    key.deterministic = wanted.kernels[0].problem.deterministic;
    return key;
}

}  // namespace

KernelKey key_of(const KernelSpec& spec) {
    const Problem& p = spec.problem;
    return {spec.kind,
            p.dtype,
            static_cast<int>(p.head_dim),
            static_cast<int>(p.head_dim_v),
            mask_class(p),
            p.softcap,
            p.bias,
            p.alibi,
            p.sink,
            spec.aligned,
            spec.rescaled,
            spec.paged,
            spec.problem.packed,
            spec.config,
            false};
}

size_t KernelKeyHash::operator()(const KernelKey& key) const {
    size_t hash = 1469598103934665603u;
    auto mix = [&](size_t value) { hash = (hash ^ value) * 1099511628211u; };
    mix(static_cast<size_t>(key.kind)), mix(static_cast<size_t>(key.dtype));
    mix(static_cast<size_t>(key.head_dim)), mix(static_cast<size_t>(key.head_dim_v)), mix(static_cast<size_t>(key.mask));
    mix(size_t{key.softcap} | size_t{key.bias} << 1 | size_t{key.alibi} << 2 | size_t{key.sink} << 3 | size_t{key.aligned} << 4 | size_t{key.rescaled} << 5 |
        size_t{key.paged} << 6 | size_t{key.packed} << 7 | size_t{key.deterministic} << 8);
    for (const ConfigField& field : config_fields()) mix(static_cast<size_t>(key.config.*field.member));
    return hash;
}

Result<Kernels::Choice*> Kernels::choose(const OperationPlan& wanted, const Problem& problem, const Config& config, const CallTraits& traits) {
    KernelKey key = key_of_choice(wanted);
    if (auto found = choices_.find(key); found != choices_.end()) return &found->second;
    Status refused;
    for (int i = 0; std::optional<Candidate> next = candidate(i, problem, device_.info().arch); ++i) {
        TILEWRIGHT_ASSIGN_OR_RETURN(OperationPlan plan, plan_operation(problem, next->instead.value_or(config), next->arch, traits));
        Status status;
        for (const KernelSpec& spec : plan.kernels)
            if (status.ok()) status = generate(spec, next->arch).status();
        if (status.ok()) return &choices_.emplace(key, Choice{next->instead, next->arch, {}}).first->second;
        if (status.code() != StatusCode::unsupported) return status;
        refused = status;
    }
    return refused;
}

Result<OperationPlan> Kernels::plan(const Problem& problem, const Config& config, const CallTraits& traits) {
    TILEWRIGHT_ASSIGN_OR_RETURN(OperationPlan wanted, plan_operation(problem, config, device_.info().arch, traits));
    std::unique_lock lock(mutex_);
    TILEWRIGHT_ASSIGN_OR_RETURN(Choice * choice, choose(wanted, problem, config, traits));
    if (!choice->instead) return wanted;
    return plan_operation(problem, *choice->instead, choice->arch, traits);
}

Result<ReadyOperation> Kernels::get(const Problem& problem, const Config& config, const CallTraits& traits) {
    TILEWRIGHT_ASSIGN_OR_RETURN(OperationPlan wanted, plan_operation(problem, config, device_.info().arch, traits));
    ReadyOperation ready;
    std::optional<Config> instead;
    {
        std::shared_lock lock(mutex_);
        if (auto found = choices_.find(key_of_choice(wanted)); found != choices_.end()) instead = found->second.instead, ready.kernels = found->second.kernels;
    }
    if (ready.kernels.empty()) {
        std::unique_lock lock(mutex_);
        TILEWRIGHT_ASSIGN_OR_RETURN(Choice * choice, choose(wanted, problem, config, traits));
        instead = choice->instead;
        TILEWRIGHT_ASSIGN_OR_RETURN(OperationPlan plan, plan_operation(problem, instead.value_or(config), device_.info().arch, traits));
        for (const KernelSpec& spec : plan.kernels) {
            TILEWRIGHT_ASSIGN_OR_RETURN(Kernel * kernel, load(spec, choice->arch));
            ready.kernels.push_back(kernel);
        }
        choice->kernels = ready.kernels;
    }
    ready.plan = std::move(wanted);
    if (instead) {
        TILEWRIGHT_ASSIGN_OR_RETURN(ready.plan, plan_operation(problem, *instead, device_.info().arch, traits));
    }
    return ready;
}

Result<Kernel*> Kernels::get(const KernelSpec& spec) {
    {
        std::shared_lock lock(mutex_);
        if (auto found = kernels_.find(key_of(spec)); found != kernels_.end()) return found->second.get();
    }
    std::unique_lock lock(mutex_);
    return load(spec, device_.info().arch);
}

Result<Kernel*> Kernels::load(const KernelSpec& spec, const Arch& arch) {
    KernelKey key = key_of(spec);
    if (auto found = kernels_.find(key); found != kernels_.end()) return found->second.get();
    TILEWRIGHT_ASSIGN_OR_RETURN(KernelSource source, generate(spec, arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(CodeObject object, compile_cached(backend_, source, arch, cache_, packs_));
    TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, device_.load(object, spec, source));
    return kernels_.emplace(key, std::move(kernel)).first->second.get();
}

}  // namespace tilewright
