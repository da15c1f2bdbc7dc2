// What checks of a backward need beforehand: the results of its forward.
#pragma once
#include <functional>

#include "verify/check.h"
#include "verify/kernel_supply.h"

namespace tilewright {

// A workload of a backward problem whose out and lse are the right results of its forward, rounded. Change its inputs, then call
// forward_results() again.
Workload make_backward_workload(const Problem& problem, const WorkloadOptions& options = {});
void forward_results(Workload& workload);

// prepare_check() for problems of any size: where the reference would take too long for a whole forward, the device computes it, with kernels that
// `forward` gives for the forward problem and that are checked first. internal: its results are wrong.
using ForwardKernels = std::function<Result<ReadyOperation>(const Problem& forward, const CallTraits& traits)>;
Result<PreparedCheck> prepare_check(Device& device, const ForwardKernels& forward, const Problem& problem, const CheckOptions& options = {});

// Runs a backward and leaves the gradients in the workload; compares all of them, and guards and gaps for being untouched. unsupported: the
// device cannot run this config on this problem. `runs` more than 1: the results of all runs must be bitwise equal.
Result<CheckReport> check_backward(Device& device, KernelSupply& supply, Workload& workload, const std::vector<BackwardLaunch>& plan, int runs = 1);
Result<CheckReport> check_backward(Device& device, KernelSupply& supply, Workload& workload, const Config& config, int runs = 1);  // of backward_plan()
// Compares what the workload holds after a download; for callers that launch by themselves.
CheckReport compare_gradients(const Workload& workload);

}  // namespace tilewright
