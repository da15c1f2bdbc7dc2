// Is a loaded kernel right? Runs it on random data and compares with the float64 reference by the acceptance rule.
#pragma once
#include <string>
#include <vector>

#include "backends/backend.h"
#include "verify/compare.h"
#include "verify/workload.h"

namespace tilewright {

struct CheckOptions {
    WorkloadOptions workload = {};
    int64_t max_rows = 256;  // (batch, head, query) rows compared with the reference, sampled; 0: all
    int threads = 0;         // of the reference; 0: one a processor
    KernelKind kind = KernelKind::attention_forward;
    int runs = 1;            // more than 1: the results of all runs must be bitwise equal
};

// A workload and its right answer, computed once for all the kernels of one problem. Plain data, safe to share for reading.
struct PreparedCheck {
    Workload workload;
    std::vector<RowIndex> rows;
    Answer reference, naive;
    CheckOptions options;
};

struct CheckReport {
    bool passed = false;
    std::string failure;  // the first thing that was wrong, one sentence; empty if passed
    Comparison out, lse;
    int64_t rows = 0;  // compared with the reference
};

// invalid_argument if the problem is not valid or no forward.
Result<PreparedCheck> prepare_check(const Problem& problem, const CheckOptions& options = {});
// Runs `kernel`, which must have been built for spec_for(prepared.workload, config, options.kind), and compares: the sampled rows with the
// reference, all other rows for being written and finite, guards and gaps for being untouched. A wrong result is a
// report that says so; an error Status is a device that failed.
Result<CheckReport> check(Device& device, Kernel& kernel, const PreparedCheck& prepared);
// The same for a single kernel: prepares, then checks. The scale is negative where the spec says `rescaled`, the layout
// unaligned where it does not say `aligned`.
Result<CheckReport> check(Device& device, Kernel& kernel, const KernelSpec& spec, const CheckOptions& options = {});

// Compares what `workload` holds after a download; for callers that launch by themselves.
CheckReport compare_outputs(const Workload& workload, const PreparedCheck& prepared);

}  // namespace tilewright
