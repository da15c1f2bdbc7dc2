// A checked operation as a bundle: random inputs with guards, and the rows that the float64 reference expects.
#pragma once
#include <span>
#include <string>

#include "backends/bundle.h"
#include "verify/check.h"

namespace tilewright {

struct BuiltKernel {
    KernelSource source;
    CodeObject object;
};

// What check() would launch and compare. `kernels` are those of the plan, in its order, which was made for traits_of(prepared.workload).
// invalid_argument: the problem has no query; unsupported: kernels of sm_90a's copy engine that decode or differentiate.
Result<Bundle> make_bundle(Backend& backend, const Arch& arch, const PreparedCheck& prepared, const OperationPlan& plan, std::span<const BuiltKernel> kernels);

// The first thing that is wrong with `results` (the buffers after a replay, in the bundle's order), one sentence; empty if they
// are as expected. Buffers that no kernel may write must be unchanged.
std::string check_bundle(const Bundle& bundle, const std::vector<std::string>& results);

}  // namespace tilewright
