// Is an operation right? Runs its kernels on random data and compares with the float64 reference by the acceptance rule.
#pragma once
#include <string>
#include <vector>

#include "backends/operation_plan.h"
#include "verify/compare.h"
#include "verify/device_workload.h"

namespace tilewright {

struct CheckOptions {
    WorkloadOptions workload = {};
    int64_t max_rows = 256;  // (batch, head, row) rows of each tensor that are compared with the reference, sampled; 0: all
    int threads = 0;         // of the reference; 0: one a processor
    int runs = 1;            // more than 1: the results of all runs must be bitwise equal
};

// What some rows of a tensor that an operation writes must be.
struct ExpectedRows {
    const char* name = "";  // "out", "query_gradient"
    Tensor Workload::*tensor = nullptr;
    std::vector<RowIndex> rows;
    std::vector<double> reference, naive;  // [rows][columns]
    double terms = 0;                      // compare()'s
};

// A workload and its right answer, computed once for all the kernels of one problem. Plain data.
struct PreparedCheck {
    Workload workload;
    std::vector<ExpectedRows> expected;
    CheckOptions options;
};

struct CheckReport {
    struct Of {
        std::string name;
        Comparison comparison;
    };
    bool passed = false;
    std::string failure;  // the first thing that was wrong, one sentence; empty if passed
    std::vector<Of> tensors;
    int64_t rows = 0;  // compared with the reference, all tensors together
    double relative_error() const;  // the largest of the tensors'
};

// The right answer for the workload, on rows that are sampled as the options say. Of a backward workload, out and lse must hold the forward's
// results.
std::vector<ExpectedRows> expected_rows(const Workload& workload, const CheckOptions& options);

// A workload of random data and its answer. invalid_argument: the problem is not valid. Of a backward, a whole forward is computed here, which
// takes long where it is large (check_backward.h has another way).
Result<PreparedCheck> prepare_check(const Problem& problem, const CheckOptions& options = {});

// Runs the operation, whose kernels must have been built for traits_of(prepared.workload), and compares: the sampled rows with the
// reference, all other rows for being written and finite, guards and gaps for being untouched. A wrong result is a
// report that says so; an error Status is a device that failed. The workload holds the results afterwards.
Result<CheckReport> check(Device& device, const ReadyOperation& operation, PreparedCheck& prepared);
// The same with data that are on the device already, an upload of prepared.workload, and stay there for others: what the operation writes into its inputs is put right.
Result<CheckReport> check(Device& device, const ReadyOperation& operation, DeviceWorkload& on_device, PreparedCheck& prepared);

// Compares what `workload` holds after a download; for callers that launch by themselves.
CheckReport compare_outputs(const Workload& workload, const std::vector<ExpectedRows>& expected);

}  // namespace tilewright
