// All cases of the numerics contract, and random problems, on one device under a set of configs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "verify/kernel_supply.h"

namespace tilewright {

struct SuiteOptions {
    Operation operation = Operation::forward;
    bool materialized = false;  // forward: the standard baseline instead of tiled attention
    std::vector<Config> configs = {Config{}};  // the first with every element type, each of the others with one
    std::vector<DType> dtypes = {DType::fp32, DType::fp16, DType::bf16};
    std::string only;  // one case, "random", or one random problem, "random:17"; empty: everything
    int random_problems = 60;
    uint64_t seed = 1;
    int threads = 0;  // that compile and compare; launches are serial; 0: one a processor
};

enum class CaseOutcome { passed, failed, skipped };  // skipped: the device cannot run this config on this problem

struct CaseResult {
    std::string name;  // of the case
    DType dtype = DType::fp32;
    Config config;
    CaseOutcome outcome = CaseOutcome::passed;
    std::string message;    // why not passed
    std::string arguments;  // of `tilewright verify`, to repeat it alone
};

struct SuiteReport {
    std::vector<CaseResult> results;  // in the order of configs, types, cases
    int count(CaseOutcome outcome) const;
};

// Calls `progress` with each result as it comes, how many there are so far and will be, from one thread at a time. invalid_argument: no config, no element type, or
// `only` names no case (the message lists them).
Result<SuiteReport> run_suite(Device& device, KernelSupply& supply, const SuiteOptions& options, const std::function<void(const CaseResult&, int done, int total)>& progress = {});

}  // namespace tilewright
