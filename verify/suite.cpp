// Runs the cases and counts.
#include "verify/suite.h"

#include <algorithm>

#include "verify/cases.h"
#include "verify/check_backward.h"
#include "verify/parallel.h"
#include "verify/random_problem.h"

namespace tilewright {
namespace {

#define TILEWRIGHT_CASE(name, rule) {#name, rule, cases::name},
constexpr Case forward_table[] = {
#include "verify/cases.inc"
};
#undef TILEWRIGHT_CASE
#define TILEWRIGHT_CASE(name, rule) {#name, rule, backward_cases::name},
constexpr Case backward_table[] = {
#include "verify/cases_backward.inc"
};
#undef TILEWRIGHT_CASE
#define TILEWRIGHT_CASE(name, rule) {#name, rule, decode_cases::name},
constexpr Case decode_table[] = {
#include "verify/cases_decode.inc"
};
#undef TILEWRIGHT_CASE

struct Job {
    CaseResult result;
    const Case* one = nullptr;  // null: a random problem
    uint64_t index = 0;         // of the random problem
};

std::string repeat(const Job& job, const SuiteOptions& options) {
    std::string kind = options.materialized ? std::string("--kernel ") + name(KernelKind::attention_materialized) + " " : "";
    if (options.operation != Operation::forward) kind = std::string("--operation ") + name(options.operation) + " ";
    return kind + "--case " + job.result.name + " --dtype " + name(job.result.dtype) + " --seed " + std::to_string(options.seed) + " --config '" + to_json(job.result.config) + "'";
}

// 16-bit dot products are for bf16 alone: the other types run such a config without them.
Config suited(Config config, DType dtype) {
    if (dtype != DType::bf16) config.dot16 = 0;
    return config;
}

std::vector<Job> plan(const SuiteOptions& options) {
    std::vector<Job> jobs;
    size_t types = options.dtypes.size();
    for (size_t c = 0; c < options.configs.size(); ++c)
        for (size_t t = 0; t < types; ++t) {
            bool dot16 = options.configs[c].dot16 && std::ranges::count(options.dtypes, DType::bf16);
            if (c > 0 && (dot16 ? options.dtypes[t] != DType::bf16 : t != c % types)) continue;
            for (const Case& one : all_cases(options.operation))
                if (options.only.empty() || options.only == one.name) jobs.push_back({{one.name, options.dtypes[t], suited(options.configs[c], options.dtypes[t]), CaseOutcome::passed, "", ""}, &one, 0});
        }
    auto random = [&](uint64_t i) {
        DType dtype = options.dtypes[i % types];
        Config config = suited(options.configs[i / types % options.configs.size()], dtype);
        jobs.push_back({{"random:" + std::to_string(i), dtype, config, CaseOutcome::passed, "", ""}, nullptr, i});
    };
    if (options.only.starts_with("random:") && options.only.find_first_not_of("0123456789", 7) == std::string::npos && options.only.size() < 16 && options.only.size() > 7) {
        random(std::stoull(options.only.substr(7)));
    } else if (options.only.empty() || options.only == "random") {
        for (int i = 0; i < options.random_problems; ++i) random(uint64_t(i));
    }
    for (Job& job : jobs) job.result.arguments = repeat(job, options);
    return jobs;
}

Status run_random(const CaseRunner& run, const Job& job, Operation operation) {
    RandomProblem random = random_problem(run.seed(), job.index, run.dtype(), operation);
    Workload w = operation == Operation::backward ? make_backward_workload(random.problem, random.options) : make_workload(random.problem, random.options);
    w.splits = random.splits;
    return at(describe(random), run.check(w, 200));
}

}  // namespace

std::span<const Case> all_cases(Operation operation) {
    if (operation == Operation::backward) return backward_table;
    if (operation == Operation::decode) return decode_table;
    return forward_table;
}

int SuiteReport::count(CaseOutcome outcome) const {
    return int(std::ranges::count_if(results, [&](const CaseResult& result) { return result.outcome == outcome; }));
}

Result<SuiteReport> run_suite(Device& device, KernelSupply& supply, const SuiteOptions& options, const std::function<void(const CaseResult&, int done, int total)>& progress) {
    if (options.configs.empty() || options.dtypes.empty()) return invalid_argument("there is nothing to verify: no config or no element type");
    std::vector<Job> jobs = plan(options);
    if (jobs.empty()) {
        std::string known;
        for (const Case& one : all_cases(options.operation)) known += std::string(one.name) + ", ";
        return invalid_argument("there is no case '" + options.only + "'; there are " + known + "random and random:N");
    }
    std::mutex launches, reports;
    int done = 0;
    parallel_for(int64_t(jobs.size()), options.threads, [&](int64_t i) {
        Job& job = jobs[size_t(i)];
        CaseResult& result = job.result;
        CaseRunner run(device, supply, launches, result.config, result.dtype, options.seed, options.operation, options.materialized);
        Status status = job.one ? job.one->run(run) : run_random(run, job, options.operation);
        result.outcome = status.ok() ? CaseOutcome::passed : status.code() == StatusCode::unsupported ? CaseOutcome::skipped : CaseOutcome::failed;
        result.message = status.message();
        std::lock_guard lock(reports);
        if (progress) progress(result, ++done, int(jobs.size()));
    });
    SuiteReport report;
    for (Job& job : jobs) report.results.push_back(std::move(job.result));
    return report;
}

}  // namespace tilewright
