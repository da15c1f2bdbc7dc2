// Workloads for emulated backward kernels, held against the float64 reference.
#pragma once
#include "backward.h"
#include "verify/workload.h"

namespace tilewright::emulated {

// `sizes` as in a problem's text: "b2,hq8,hkv2,sq21,skv75".
Workload make_workload(const EmulatedBackward& kernels, const std::string& sizes);
// Runs the prologue, the passes and, with a sink, its kernel, on the forward's results; fails the test where a gradient is wrong.
void expect_right_gradients(const EmulatedBackward& kernels, Workload& w, std::vector<Pass> passes, int order);

}  // namespace tilewright::emulated
