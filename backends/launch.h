// What every device fills in of a launch's parameters: sizes from the problem, the work order from the config.
#pragma once
#include "backends/kernel_source.h"
#include "kernels/parameters.h"

namespace tilewright {

// Sizes, mask bounds and scale of a valid problem; pointers and strides are the caller's to set.
// `scale` is that of the scores; `softcap` is ignored unless the problem has one.
kernel::ForwardParameters sized_parameters(const Problem& problem, float scale, float softcap);

// 1 / sqrt(head_dim): the true one, not a padded one.
float default_scale(const Problem& problem);

// Launches that a kernel takes one after another, each with its number in `phase`.
constexpr int phases_of(KernelKind kind) { return kind == KernelKind::attention_materialized ? 3 : 1; }

// tiles and section_heads, from the sizes in `parameters`, the config and the device's dies. tiles_dealt stays the device's to set.
void fill_work_order(const KernelSpec& spec, kernel::ForwardParameters& parameters, int dies = 1);
// The same for packed sequences: tiles are slots (kernels/tile/tile.h), some of which hold nothing.
void fill_work_order(const KernelSpec& spec, kernel::PackedParameters& parameters, int dies = 1);
// The same for one of the backward's kernels: tiles of keys, of queries, of padded queries, or heads.
void fill_work_order(const KernelSpec& spec, kernel::BackwardParameters& parameters, int dies = 1);

}  // namespace tilewright
