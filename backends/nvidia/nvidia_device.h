// A device of NVIDIA's: memory, loaded kernels, launches.
//
// Two kinds of kernel run here. One of kernels/arch/sm90.h takes tensor maps, which are made at launch; it needs 16-bit elements and
// addresses and strides that are multiples of 16 bytes. One of kernels/arch/sm80.h takes the parameters alone and has no such
// needs; on a newer device it is the same text compiled for the device's own architecture (`generate` chooses by
// kernel::takes_tensor_maps; an Arch with the name "sm_90a" and the family sm80 asks for it in any case).
#pragma once
#include <memory>

#include "backends/backend.h"
#include "backends/nvidia/driver.h"

namespace tilewright::nvidia {

// Uses the device's primary context, as the CUDA runtime and PyTorch do; a context that the caller has made current stays current.
// Copies and fills are ordered on the default stream; a fill may return before it is done. Launches may be captured into a graph.
// The driver must outlive the device.
Result<std::unique_ptr<Device>> open_device(const Driver& driver, int index);

}  // namespace tilewright::nvidia
