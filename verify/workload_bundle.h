// A checked launch as a bundle: random inputs with guards, and the rows that the float64 reference expects.
#pragma once
#include <string>

#include "backends/bundle.h"
#include "verify/check.h"

namespace tilewright {

// What check() would launch and compare, for `object`, which was compiled for traits_of(prepared.workload).
// invalid_argument: the problem has no query.
Result<Bundle> make_bundle(Backend& backend, const Arch& arch, const PreparedCheck& prepared, const KernelSpec& spec, const KernelSource& source,
                           const CodeObject& object);

// The first thing that is wrong with `results` (the buffers after a replay, in the bundle's order), one sentence; empty if they
// are as expected. Buffers that the kernel may not write must be unchanged.
std::string check_bundle(const Bundle& bundle, const std::vector<std::string>& results);

}  // namespace tilewright
