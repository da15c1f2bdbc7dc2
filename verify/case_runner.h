// What a case is written with: run a workload, check it against the reference, against answers by hand, bit against bit.
#pragma once
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "verify/check.h"
#include "verify/kernel_supply.h"

namespace tilewright {

// One case under one config and element type. Every function returns ok, unsupported (this device and config cannot: the
// case is skipped), or a sentence that says what was wrong. Not thread-safe; several may share a device and a supply.
class CaseRunner {
public:
    // `launches` serialises what runs on the device. All references must outlive this.
    CaseRunner(Device& device, KernelSupply& supply, std::mutex& launches, const Config& config, DType dtype, uint64_t seed,
               Operation operation = Operation::forward, bool materialized = false)
        : device_(device), supply_(supply), launches_(launches), config_(config), dtype_(dtype), seed_(seed), operation_(operation), materialized_(materialized) {}

    Device& device() const { return device_; }
    const Config& config() const { return config_; }
    DType dtype() const { return dtype_; }
    uint64_t seed() const { return seed_; }

    // The problem text without operation and element type: "hq4,hkv2,sq5,skv9,d64,causal".
    Problem problem(std::string_view parts) const;
    // Of a backward, with the forward's results.
    Workload random(std::string_view parts, const WorkloadOptions& options = {}) const;
    // Q = 0, scale 1, every column of value j holds first + j: the workload of the answers by hand.
    Workload counting(std::string_view parts, double first = 0) const;

    // Launches so many times, over one workspace, and leaves the results in the workload. Writes outside the results are failures, and results of
    // which not every bit is the same.
    Status run(Workload& workload, int times = 1) const;
    // The same with the batches of key, value and out `apart` elements from each other in device memory, of which only the
    // rows in use are touched. The workload's layout must be heads_first. unsupported if there are not so many addresses.
    Status run_far_apart(Workload& workload, int64_t apart) const;
    // Runs and applies the acceptance rule to `rows` rows (0: all).
    Status check(Workload& workload, int64_t rows = 0) const;
    // Applies the acceptance rule to results that are there already.
    Status matches_reference(const Workload& workload, int64_t rows = 0) const;
    // check(), and every (batch, head) has these answers per query, the same in every column of out: in the reference, and
    // with `exact` in the kernel to the last place of its type. `lse` may be left out.
    Status by_hand(Workload& workload, const std::vector<double>& out, const std::vector<double>& lse, bool exact = true) const;

private:
    Result<ReadyOperation> operation_for(const Workload& workload) const;

    Device& device_;
    KernelSupply& supply_;
    std::mutex& launches_;
    Config config_;
    DType dtype_;
    uint64_t seed_;
    Operation operation_;
    bool materialized_;
};

Status wrong(std::string sentence);
// Puts `where` in front of the message of a wrong result; leaves ok and unsupported alone.
Status at(const std::string& where, Status status);

using RowFilter = std::function<bool(const RowIndex&)>;
// ok if what was written in the rows that `included` names is equal bit by bit (any NaN equals any other).
Status same_bits(const Workload& a, const Workload& b, const RowFilter& included = {});

// The same numbers in every layout: right as they come, and the same bits in each layout that `repeats`. In others, which may have a kernel of their
// own or none, right too.
Status check_layouts(const CaseRunner& run, std::string_view parts, const std::function<bool(Layout)>& repeats);

// Views that share the buffers' numbers: only those rows, that head, of all tensors concerned.
void keep_keys(Workload& workload, int64_t first, int64_t count);
void keep_queries(Workload& workload, int64_t first, int64_t count);
void keep_head(Workload& workload, int64_t head);  // one query head and its KV head, of a single batch

}  // namespace tilewright
