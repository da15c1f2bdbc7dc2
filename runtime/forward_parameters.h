// What calls that are given ForwardTensors or DecodeTensors (`Tensors`) share beside the checks of each tensor.
#pragma once
#include "kernels/parameters.h"
#include "runtime/tensor_checks.h"
#include "tilewright/attention.h"

namespace tilewright {

// invalid_argument unless bias, slopes, sinks and softcap are given exactly where the problem has them.
template <class Tensors>
Status check_variants(const Problem& problem, const Tensors& tensors);
// Sizes, addresses and strides of a checked call. `extents`: query, key, value, out.
template <class Tensors>
kernel::ForwardParameters forward_parameters(const Problem& problem, const Tensors& tensors, const Extent (&extents)[4]);

}  // namespace tilewright
