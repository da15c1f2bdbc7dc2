// Finds a config that runs, compiles it, remembers it.
#include "runtime/kernels.h"

#include <vector>

#include "model/space.h"

namespace tilewright {
namespace {

int mask_class(const Problem& problem) { return problem.causal() ? 1 : problem.window_left != -1 || problem.window_right != -1 ? 2 : 0; }

struct Choice {
    Arch arch;
    Config config;
};
// In the order in which they are tried.
std::vector<Choice> choices(const KernelSpec& spec, const Arch& arch) {
    if (spec.kind == KernelKind::attention_decode) return {{arch, spec.config}};  // its workspace was planned for this config
    if (is_backward(spec.kind) || spec.kind == KernelKind::append) return {{arch, spec.config}};
    std::vector<Choice> all{{arch, spec.config}, {arch, default_config(spec.problem, arch)}};
    if (arch.family == Family::sm90) {
        Arch older = arch;
        older.family = Family::sm80;
        all.push_back({older, default_config(spec.problem, older)});
    }
    return all;
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
            spec.packed,
            spec.config};
}

size_t KernelKeyHash::operator()(const KernelKey& key) const {
    size_t hash = 1469598103934665603u;
    auto mix = [&](size_t value) { hash = (hash ^ value) * 1099511628211u; };
    mix(static_cast<size_t>(key.kind)), mix(static_cast<size_t>(key.dtype));
    mix(static_cast<size_t>(key.head_dim)), mix(static_cast<size_t>(key.head_dim_v)), mix(static_cast<size_t>(key.mask));
    mix(size_t{key.softcap} | size_t{key.bias} << 1 | size_t{key.alibi} << 2 | size_t{key.sink} << 3 | size_t{key.aligned} << 4 | size_t{key.rescaled} << 5 |
        size_t{key.paged} << 6 | size_t{key.packed} << 7);
    for (const ConfigField& field : config_fields()) mix(static_cast<size_t>(key.config.*field.member));
    return hash;
}

Result<Kernel*> Kernels::get(const KernelSpec& spec) {
    KernelKey key = key_of(spec);
    {
        std::shared_lock lock(mutex_);
        if (auto found = kernels_.find(key); found != kernels_.end()) return found->second.get();
    }
    std::unique_lock lock(mutex_);
    if (auto found = kernels_.find(key); found != kernels_.end()) return found->second.get();
    TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, build(spec));
    return kernels_.emplace(key, std::move(kernel)).first->second.get();
}

Result<std::unique_ptr<Kernel>> Kernels::build(const KernelSpec& spec) {
    Status refused;
    for (const Choice& choice : choices(spec, device_.info().arch)) {
        KernelSpec candidate = spec;
        candidate.config = choice.config;
        Result<KernelSource> source = generate(candidate, choice.arch);
        if (!source.ok() && source.status().code() != StatusCode::unsupported) return source.status();
        if (!source.ok()) {
            refused = source.status();
            continue;
        }
        TILEWRIGHT_ASSIGN_OR_RETURN(CodeObject object, compile_cached(backend_, *source, choice.arch, cache_));
        return device_.load(object, candidate, *source);
    }
    return refused;
}

}  // namespace tilewright
