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

std::vector<KernelKind> backward_kernels(const Problem& problem) {
    std::vector<KernelKind> kinds{KernelKind::attention_backward_prologue, KernelKind::attention_backward_keys, KernelKind::attention_backward_queries};
    if (problem.sink) kinds.push_back(KernelKind::attention_backward_sink);
    return kinds;
}

}  // namespace tilewright
