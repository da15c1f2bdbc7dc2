// What each family of architectures adds to the text of a kernel.
#pragma once
#include "backends/kernel_source.h"

namespace tilewright {

struct FamilyText {
    std::string prelude;  // before the arch header: instruction wrappers whose names depend on sizes
    std::string base_header;  // below kernels/, before `header`; empty: none
    std::string header;   // below kernels/: "arch/sm90.h"
    std::string type;     // "Sm90<Config>"
    std::string entry;    // the extern "C" function; `Config` and `Arch` are declared before it
    int threads = 1;
    int64_t shared_bytes = 0;  // dynamic, as a launch is told
    int64_t static_shared_bytes = 0;  // that the entry declares: on AMD, all
};

// unsupported, naming the value and the limit, if the family cannot run the config. The first asks the right one of the others.
Result<FamilyText> family_text(const KernelSpec& spec, const Arch& arch);
Result<FamilyText> cpu_text(const KernelSpec& spec, const Arch& arch);
Result<FamilyText> nvidia_text(const KernelSpec& spec, const Arch& arch);
Result<FamilyText> amd_text(const KernelSpec& spec, const Arch& arch);

// unsupported: "WHAT is VALUE; LIMIT".
Status refuse(const std::string& what, int64_t value, const std::string& limit);

// Whether the backward's passes are by the copy engine: aligned 16-bit tensors of head dims up to 256, no bias, no packed sequences.
bool takes_copy_engine_backward(const Problem& problem, const Arch& arch, bool aligned);
// Whether these are the passes over keys and queries of arch/sm90_backward.h: dK and dV find registers together.
bool takes_sm90_backward(const Problem& problem, const Arch& arch, bool aligned);
// Or dK, dV and dQ have passes of their own, of arch/sm90_backward_wide.h.
bool takes_sm90_wide_backward(const Problem& problem, const Arch& arch, bool aligned);

}  // namespace tilewright
