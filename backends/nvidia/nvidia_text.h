// What the forward's, decoding's and the backward's texts for NVIDIA share.
#pragma once
#include "backends/family_text.h"
#include "kernels/resources_nvidia.h"

namespace tilewright::nvidia {

kernel::NvidiaTile tile_of(const KernelSpec& spec);

// The products of 64 rows and n columns: n is part of the instruction's name and of its operand list. Without `keeps` what the
// accumulator held is dead before.
std::string wgmma(const char* name, int n, DType dtype, bool left_in_registers, bool accumulate, bool keeps = true, bool turned_right = false);

// Limits that kernels of all families have. `shared_bytes` and `registers` are what the config needs, by resources_nvidia.h.
Status check_limits(const KernelSpec& spec, const Arch& arch, int threads, int64_t shared_bytes, int registers, int register_limit);

std::string entry_text(const KernelSpec& spec);

// Of a kernel that works row by row: it suits every architecture and layout, and needs no shared memory.
FamilyText plain_text(const KernelSpec& spec, const char* header, const char* type, int threads);

// Of the backward's kernels.
Result<FamilyText> backward_text(const KernelSpec& spec, const Arch& arch);

}  // namespace tilewright::nvidia
