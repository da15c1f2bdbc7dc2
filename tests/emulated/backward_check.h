// Workloads for emulated backward kernels, held against the float64 reference.
#pragma once
#include <array>

#include "backward.h"
#include "verify/workload.h"

namespace tilewright::emulated {

// `sizes` as in a problem's text: "b2,hq8,hkv2,sq21,skv75".
Workload make_workload(const EmulatedBackward& kernels, const std::string& sizes, std::array<bool, 4> broadcast_bias = {});
// Runs the prologue, the passes and, with a bias or a sink, their kernels, on the forward's results; fails the test where a gradient is wrong.
void expect_right_gradients(const EmulatedBackward& kernels, Workload& w, std::vector<Pass> passes, int order);

// What those with a bias must do beside: sum its gradient over what it is broadcast over, and let nothing that it hides matter.
void expect_right_sums_of_bias(const EmulatedBackward& kernels);
void expect_hidden_by_bias_cannot_matter(const EmulatedBackward& kernels);
std::vector<EmulatedBackward> with_bias(std::vector<EmulatedBackward> kernels);

}  // namespace tilewright::emulated
