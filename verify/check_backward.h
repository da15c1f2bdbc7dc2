// Are the kernels of a backward right? Gradients of random data against the float64 reference, by the acceptance rule.
#pragma once
#include "backends/backward_plan.h"
#include "verify/check.h"
#include "verify/kernel_supply.h"

namespace tilewright {

// A workload of a backward problem whose out and lse are the right results of its forward, rounded. Change its inputs, then call
// forward_results() again.
Workload make_backward_workload(const Problem& problem, const WorkloadOptions& options = {});
void forward_results(Workload& workload);

struct BackwardReport {
    bool passed = false;
    std::string failure;  // the first thing that was wrong, one sentence; empty if passed
    Comparison query, key, value, sink;
};

// Runs the kernels of a backward problem and leaves the gradients in the workload; compares all of them, and guards and gaps for
// being untouched. unsupported: the device has no backward for this problem. `runs` more than 1: the results of all runs must be
// bitwise equal.
Result<BackwardReport> check_backward(Device& device, KernelSupply& supply, Workload& workload, const std::vector<BackwardLaunch>& plan, int runs = 1);
Result<BackwardReport> check_backward(Device& device, KernelSupply& supply, Workload& workload, const Config& config, int runs = 1);  // of backward_plan()

// Compares what the workload holds after a download; for callers that launch by themselves.
BackwardReport compare_gradients(const Workload& workload);

}  // namespace tilewright
