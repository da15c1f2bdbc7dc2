// The kernels of one device, compiled when first needed and kept.
#pragma once
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "backends/backend.h"
#include "runtime/code_cache.h"

namespace tilewright {

// What a compiled kernel depends on, and nothing that may change from call to call.
struct KernelKey {
    KernelKind kind = KernelKind::attention_forward;
    DType dtype = DType::bf16;
    int head_dim = 0, head_dim_v = 0, mask = 0;
    bool softcap = false, bias = false, alibi = false, sink = false, aligned = true, rescaled = false, paged = false, packed = false;
    Config config;
    bool operator==(const KernelKey&) const = default;
};
KernelKey key_of(const KernelSpec& spec);
struct KernelKeyHash {
    size_t operator()(const KernelKey& key) const;
};

// Thread-safe. Must not outlive the device.
class Kernels {
public:
    Kernels(Backend& backend, Device& device, bool cache_code)
        : backend_(backend), device_(device), cache_(cache_code ? CodeCache::of_user() : CodeCache("")) {}

    // The kernel for a spec whose config was looked up for this device: with that config; where the layout or the scale rules it
    // out, with the model's own choice; on the older instructions of the same device if the newer ones cannot.
    // Compiles at the first call of a key; others that ask for a kernel wait meanwhile.
    Result<Kernel*> get(const KernelSpec& spec);

private:
    Result<std::unique_ptr<Kernel>> build(const KernelSpec& spec);

    Backend& backend_;
    Device& device_;
    CodeCache cache_;
    std::shared_mutex mutex_;
    std::unordered_map<KernelKey, std::unique_ptr<Kernel>, KernelKeyHash> kernels_;
};

}  // namespace tilewright
