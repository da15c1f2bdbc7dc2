// How a decode launch is divided, from its sizes alone, and the workspace that follows from it.
#pragma once
#include <cstdint>

#include "backends/kernel_source.h"
#include "kernels/parameters.h"

namespace tilewright {

struct DecodePlan {
    int units = 1;  // of a line (kernels/decode_part.h)
    int64_t lines = 0;
    int64_t counter_bytes = 0, state_bytes = 0, out_bytes = 0;  // one after another in the workspace; all 0 if nothing is split
    int64_t workspace_bytes() const { return counter_bytes + state_bytes + out_bytes; }
};

// Whether the kernel is one of sm90_decode.h; else, on an NVIDIA device, one of sm80_decode.h.
bool decodes_by_copy_engine(const KernelSpec& spec, const Arch& arch);

// `units` of the config for each multiprocessor or thread; where it is 0, how many keep a device busy: as many blocks as its multiprocessors hold; on a CPU so many that it hardly matters if one
// thread is slow.
int64_t units_for(const KernelSpec& spec, const Arch& arch);

// `splits` units of a line, or as many as make `all_units` of all lines together where it is 0; never more than there are KV tiles.
// invalid_argument: splits is negative, or there are more KV tiles, units or items than a kernel can count.
Result<DecodePlan> plan_decode(const KernelSpec& spec, int64_t all_units, int splits);

// Units and workspace of a launch.
void use_plan(const DecodePlan& plan, void* workspace, kernel::DecodeParameters& parameters);

// Units of all lines of a launch of this kernel; 0: nothing is to be done.
int decode_units(const KernelSpec& spec, const kernel::DecodeParameters& parameters);

}  // namespace tilewright
