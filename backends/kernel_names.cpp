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

}  // namespace tilewright
