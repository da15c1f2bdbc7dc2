// The AMD backend: hipRTC or clang to compile, the HIP runtime to run. Both are looked for when first asked for.
#pragma once
#include <memory>
#include <string>

#include "backends/backend.h"

namespace tilewright::amd {

// `hip_library`: a file; empty: as Hip::open says. Devices must not outlive their backend.
std::unique_ptr<Backend> make_backend(std::string hip_library = "");

}  // namespace tilewright::amd
