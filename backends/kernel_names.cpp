// Names of kernels, apart from the generator so that naming one does not pull in every family.
#include "backends/kernel_source.h"

namespace tilewright {

const char* name(KernelKind kind) {
    switch (kind) {
#define TILEWRIGHT_KERNEL(name, header, summary) \
    case KernelKind::name: return #name;
#include "kernels/kernels.inc"
#undef TILEWRIGHT_KERNEL
    }
    return "unknown";
}

BackwardConfigs backward_configs(const Arch& arch) {
    Config config;
    config.block_q = 64, config.block_kv = 64;
    BackwardConfigs configs{config, config};
    if (arch.backend != "nvidia") return configs;
    // Two warpgroups own 128 rows; the columns of heads that work at the same time share the L2 cache.
    for (Config* c : {&configs.keys, &configs.queries}) c->workers = 2, c->stages = 2, c->section_kb = 32 * 1024;
    configs.keys.block_kv = 128, configs.queries.block_q = 128;
    return configs;
}

std::vector<KernelKind> backward_kernels(const Problem& problem) {
    std::vector<KernelKind> kinds{KernelKind::attention_backward_prologue, KernelKind::attention_backward_keys, KernelKind::attention_backward_queries};
    if (problem.sink) kinds.push_back(KernelKind::attention_backward_sink);
    return kinds;
}

}  // namespace tilewright
