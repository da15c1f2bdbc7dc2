// The kernels of one device, compiled when first needed and kept.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

#include "backends/operation_plan.h"
#include "runtime/code_cache.h"

namespace tilewright {

// What a compiled kernel depends on, and nothing that may change from call to call.
struct KernelKey {
    KernelKind kind = KernelKind::attention_forward;
    DType dtype = DType::bf16;
    int head_dim = 0, head_dim_v = 0, mask = 0;
    bool softcap = false, bias = false, alibi = false, sink = false, aligned = true, rescaled = false, paged = false, packed = false;
    Config config;
    bool deterministic = false;  // of a choice: another config that stands in must be repeatable too; the kernels are the same
    bool operator==(const KernelKey&) const = default;
};
KernelKey key_of(const KernelSpec& spec);
struct KernelKeyHash {
    size_t operator()(const KernelKey& key) const;
};

// Thread-safe. Must not outlive the device.
class Kernels {
public:
    Kernels(Backend& backend, Device& device, bool cache_code, PackedCode packs = {})
        : backend_(backend), device_(device), cache_(cache_code ? CodeCache::of_user() : CodeCache("")), packs_(std::move(packs)) {}

    // The kernels of a call whose config was looked up for this device: with that config; where the layout or the scale rules it
    // out, with the model's own choice; on the older instructions of the same device if the newer ones cannot.
    // Compiles at the first call of a kind; others that ask for a kernel wait meanwhile.
    Result<ReadyOperation> get(const Problem& problem, const Config& config, const CallTraits& traits);
    // A kernel that stands alone, with no other config to fall back on.
    Result<Kernel*> get(const KernelSpec& spec);
    // The plan of an operation, as get() gives it: nothing is compiled.
    Result<OperationPlan> plan(const Problem& problem, const Config& config, const CallTraits& traits);

private:
    struct Choice {
        std::optional<Config> instead;  // of the config that was asked for
        Arch arch;                      // the device's, or the same with its older instructions
        std::vector<Kernel*> kernels;   // empty until they are needed
    };
    // `mutex_` must be held.
    Result<Choice*> choose(const OperationPlan& wanted, const Problem& problem, const Config& config, const CallTraits& traits);
    Result<Kernel*> load(const KernelSpec& spec, const Arch& arch);

    Backend& backend_;
    Device& device_;
    CodeCache cache_;
    PackedCode packs_;
    std::shared_mutex mutex_;
    std::unordered_map<KernelKey, Choice, KernelKeyHash> choices_;  // by the first kernel of what was asked for: the others follow from it
    std::unordered_map<KernelKey, std::unique_ptr<Kernel>, KernelKeyHash> kernels_;
};

}  // namespace tilewright
