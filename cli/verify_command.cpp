// tilewright verify: does a device compute what docs/numerics.md says?
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/cli.h"
#include "db/defaults.h"
#include "model/space.h"
#include "verify/cases.h"
#include "verify/check_backward.h"
#include "verify/device_workload.h"
#include "verify/suite.h"

namespace tilewright::cli {
namespace {

using Json = nlohmann::ordered_json;

// A problem of the operation under which all that is tuned makes a difference.
Problem typical_problem(Operation operation) {
    Problem problem;
    problem.operation = operation;
    problem.batch = 2, problem.heads_q = 4, problem.heads_kv = 2, problem.seq_q = problem.seq_kv = 512, problem.window_right = 0;
    if (operation == Operation::decode) problem.seq_q = 1, problem.window_right = -1;
    return problem;
}

// Configs of one kernel: the order of work does not reach its code.
bool same_kernel(Config a, const Config& b) {
    a.section_kb = b.section_kb;
    return a == b;
}

// The model's choice, then few configs in which every value of every tunable occurs, both schedules and a maximum that never lags; of the forward also those that
// ship as winners of this architecture, which pair values as users will.
std::vector<Config> covering_configs(Operation operation, const Arch& arch) {
    Problem problem = typical_problem(operation);
    Space space = search_space(problem, arch);
    std::vector<Config> legal = enumerate(space), chosen{default_config(problem, arch)};
    std::set<std::pair<size_t, int>> covered;  // (field, value)
    auto uncovered = [&](const Config& config) {
        int count = 0;
        for (size_t f = 0; f < space.fields.size(); ++f) count += !covered.contains({f, config.*space.fields[f].member});
        return count;
    };
    auto cover = [&](const Config& config) {
        for (size_t f = 0; f < space.fields.size(); ++f) covered.insert({f, config.*space.fields[f].member});
    };
    cover(chosen[0]);
    while (!legal.empty()) {
        auto best = std::ranges::max_element(legal, {}, uncovered);
        if (uncovered(*best) == 0) break;
        chosen.push_back(*best);
        cover(chosen.back());
    }
    problem.dtype = DType::fp32;  // kernels of their own on some architectures, also for layouts that are not aligned
    if (Config config = default_config(problem, arch); !std::ranges::count(chosen, config)) chosen.push_back(config);
    if (operation != Operation::forward) return chosen;
    Config other = chosen[0];
    other.overlapped = !other.overlapped;
    chosen.push_back(other);
    other.slack = 0;
    chosen.push_back(other);
    for (const MeasurementRow& row : default_rows())
        if (const Config& winner = row.measurement.config; row.problem.operation == operation && row.device.arch == arch.name &&
                                                           std::ranges::none_of(chosen, [&](const Config& config) { return same_kernel(winner, config); }))
            chosen.push_back(winner);
    return chosen;
}

struct Verified {
    std::string device_id;
    std::unique_ptr<Device> device;
    Backend* backend = nullptr;
};

Result<Verified> open(const std::string& id) {
    Verified on;
    TILEWRIGHT_ASSIGN_OR_RETURN(on.backend, find_backend(id.substr(0, id.find(':'))));
    TILEWRIGHT_ASSIGN_OR_RETURN(on.device, open_device(id));
    on.device_id = on.device->info().id;
    return on;
}

Json to_json(const Comparison& c) {
    return {{"passed", c.passed}, {"max_error", c.error}, {"naive_max_error", c.naive_error}, {"bound", c.bound}, {"relative_error", c.relative_error}};
}

void print(const char* tensor, const Comparison& c) {
    std::printf("  %-14s max error %.3g (bound %.3g; naive attention in the same type: %.3g), relative %.3g\n", tensor, c.error, c.bound, c.naive_error, c.relative_error);
}

int closing_line(int passed, int failed, int skipped) {
    std::printf("%d passed, %d failed", passed, failed);
    if (skipped) std::printf(", %d skipped (this device cannot run that config there)", skipped);
    std::printf("\n");
    return failed ? exit_no : exit_success;
}

// One problem under each config, on sampled rows, twice for equal bits.
int verify_problem(Verified& on, const Problem& problem, const SuiteOptions& suite, bool json) {
    CompiledKernels kernels(*on.backend, *on.device);
    const Arch& arch = on.device->info().arch;
    CheckOptions options;
    options.workload.seed = suite.seed;
    options.runs = 2;
    auto forward = [&](const Problem& of, const CallTraits& traits) { return supply(kernels, arch, of, default_config(of, arch), traits); };
    Result<PreparedCheck> prepared = prepare_check(*on.device, forward, problem, options);
    if (!prepared.ok()) return fail("verify", prepared.status());
    int passed = 0, failed = 0;
    Json results = Json::array();
    for (const Config& config : suite.configs) {
        CallTraits traits = traits_of(prepared->workload);
        traits.materialized = suite.materialized;
        Result<ReadyOperation> ready = supply(kernels, arch, problem, config, traits);
        if (!ready.ok() && ready.status().code() != StatusCode::compile) return fail("verify", ready.status());
        if (config.dq == 1) prepared->options.runs = 1;  // sums in any order
        Result<CheckReport> report = ready.ok() ? check(*on.device, *ready, *prepared) : Result<CheckReport>(ready.status());
        bool right = report.ok() && report->passed;
        std::string failure = report.ok() ? report->failure : report.status().message();
        ++(right ? passed : failed);
        Json result = {{"config", Json::parse(tilewright::to_json(config))}, {"passed", right}};
        if (!right) result["failure"] = failure;
        if (report.ok()) {
            for (const CheckReport::Of& of : report->tensors) result[of.name] = to_json(of.comparison);
            result["rows"] = report->rows;
        }
        results.push_back(std::move(result));
        if (json) continue;
        std::printf("%s  %s\n  config %s\n", right ? "passed" : "failed", to_text(problem).c_str(), tilewright::to_json(config).c_str());
        if (report.ok())
            for (const CheckReport::Of& of : report->tensors) print(of.name.c_str(), of.comparison);
        if (!right) std::printf("  %s\n", failure.c_str());
    }
    if (!json) return closing_line(passed, failed, 0);
    std::printf("%s\n", Json{{"device", on.device_id}, {"problem", to_text(problem)}, {"passed", passed}, {"failed", failed}, {"results", results}}.dump(2).c_str());
    return failed ? exit_no : exit_success;
}

struct Count {
    int passed = 0, failed = 0, skipped = 0;
};

// One operation's cases. Its results go to `all`, its rows to the screen.
Result<Count> verify_suite(Verified& on, const SuiteOptions& options, bool json, Json& operations) {
    CompiledKernels kernels(*on.backend, *on.device);
    auto start = std::chrono::steady_clock::now();
    std::string again = "tilewright verify --device " + on.device_id + " ";
    TILEWRIGHT_ASSIGN_OR_RETURN(SuiteReport report, run_suite(*on.device, kernels, options, [&](const CaseResult& result, int done, int total) {
        if (!json && done % 20 == 0) std::fprintf(stderr, "%s: %d of %d cases, %d kernels compiled\n", name(options.operation), done, total, kernels.compiled());
        if (json || result.outcome != CaseOutcome::failed) return;
        std::printf("failed  %s, %s: %s\n        %s%s\n", result.name.c_str(), name(result.dtype), result.message.c_str(), again.c_str(), result.arguments.c_str());
        std::fflush(stdout);
    }));
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

    std::map<std::string, Count> counts;
    std::map<std::string, int> reasons;  // to skip
    Json failures = Json::array(), cases = Json::array();
    for (const CaseResult& result : report.results) {
        Count& count = counts[result.name.substr(0, result.name.find(':'))];
        ++(result.outcome == CaseOutcome::passed ? count.passed : result.outcome == CaseOutcome::failed ? count.failed : count.skipped);
        if (result.outcome == CaseOutcome::skipped) ++reasons[result.message];
        if (result.outcome == CaseOutcome::failed)
            failures.push_back({{"case", result.name}, {"dtype", name(result.dtype)}, {"config", Json::parse(tilewright::to_json(result.config))}, {"message", result.message}, {"repeat", again + result.arguments}});
    }
    auto row = [&](const char* case_name, const char* rule) {
        if (!counts.contains(case_name)) return;
        const Count& count = counts[case_name];
        if (json) cases.push_back({{"case", case_name}, {"rule", rule}, {"passed", count.passed}, {"failed", count.failed}, {"skipped", count.skipped}});
        else std::printf("%-8s %-22s %4d passed %4d failed %4d skipped  %s\n", name(options.operation), case_name, count.passed, count.failed, count.skipped, rule);
    };
    for (const Case& one : all_cases(options.operation)) row(one.name, one.rule);
    row("random", "random shapes, masks, variants and layouts, by seed");
    Count all{report.count(CaseOutcome::passed), report.count(CaseOutcome::failed), report.count(CaseOutcome::skipped)};
    Json skipped = Json::array();
    for (const auto& [reason, times] : reasons) {
        if (json) skipped.push_back({{"reason", reason}, {"times", times}});
        else std::printf("%4d skipped: %s\n", times, reason.c_str());
    }
    if (!json)
        std::printf("%s on %s: %zu configs, %d kernels, seed %llu, %.0f s: %d passed, %d failed, %d skipped\n", name(options.operation), on.device->info().name.c_str(),
                    options.configs.size(), kernels.compiled(), (unsigned long long)options.seed, seconds, all.passed, all.failed, all.skipped);
    operations.push_back({{"operation", name(options.operation)}, {"configs", options.configs.size()}, {"kernels", kernels.compiled()}, {"seconds", seconds},
                          {"passed", all.passed}, {"failed", all.failed}, {"skipped", all.skipped}, {"reasons_to_skip", skipped}, {"cases", cases}, {"failures", failures}});
    return all;
}

// The operations that are asked for: one by name, or all that have such a case.
Result<std::vector<Operation>> operations_named(const std::string& text, const std::string& only) {
    std::vector<Operation> all;
    std::string known;
    for (Operation operation : {Operation::forward, Operation::backward, Operation::decode}) {
        known += std::string(known.empty() ? "" : ", ") + name(operation);
        bool has = only.empty() || only.starts_with("random") || std::ranges::count(all_cases(operation), only, &Case::name);
        if (text == name(operation) || (text == "all" && has)) all.push_back(operation);
    }
    if (all.empty() && text == "all") all.push_back(Operation::forward);  // whose suite says which cases there are
    if (all.empty()) return invalid_argument("unknown operation '" + text + "': expected " + known + " or all");
    return all;
}

}  // namespace

int verify_command(const Arguments& arguments) {
    std::string device = "cpu:0", operation = "all", dtype, only, kernel;
    std::vector<std::string> config_texts;
    bool all = false;
    int64_t seed = 1;
    int random_problems = -1;
    ProblemOptions problem_options;
    CommandLine line("verify", "compares attention on a device with the float64 reference, case by case of the numerics contract");
    line.option("device", &device, "ID", "where to run");
    line.flag("all", &all, "every case under configs that cover the search space; without it, under the model's choice alone");
    line.option("operation", &operation, "NAME", "forward, backward, decode or all");
    problem_options.add_to(line);
    line.option("case", &only, "NAME", "one case alone, \"random\", or one random problem, \"random:17\"");
    line.option("dtype", &dtype, "TYPE", "fp32, fp16 or bf16 alone");
    line.option("config", &config_texts, "JSON", "this config alone; may be repeated");
    line.option("random", &random_problems, "N", "random problems; -1: 200 with --all, 30 without");
    line.option("kernel", &kernel, "NAME", "attention_materialized: the standard baseline that writes its scores to memory, instead of tiled attention");
    line.option("seed", &seed, "N", "of all random numbers");
    line.example("tilewright verify --device cpu:0 --all").example("tilewright verify --device nvidia:0 --operation backward --all");
    line.example("tilewright verify --problem forward:b1,hq8,hkv2,sq4096,d128,bf16,causal");
    if (auto exit = line.parse(arguments)) return *exit;

    SuiteOptions options;
    options.configs.clear();
    for (const std::string& text : config_texts) {
        Result<Config> config = parse_config(text);
        if (!config.ok()) return fail("verify", config.status());
        options.configs.push_back(*config);
    }
    if (!dtype.empty()) {
        Result<DType> parsed = parse_dtype(dtype);
        if (!parsed.ok()) return fail("verify", parsed.status());
        options.dtypes = {*parsed};
    }
    if (kernel == name(KernelKind::attention_materialized)) options.materialized = true, operation = name(Operation::forward);
    else if (!kernel.empty() && kernel != name(KernelKind::attention_forward)) return fail("verify", "unknown kernel '" + kernel + "': expected attention_forward or attention_materialized");
    Result<std::vector<Operation>> operations = operations_named(operation, only);
    if (!operations.ok()) return fail("verify", operations.status());
    if (seed < 0) return fail("verify", "seed is " + std::to_string(seed) + "; it must not be negative");
    options.seed = uint64_t(seed);
    if (problem_options.given() && (all || !only.empty() || !dtype.empty())) return fail("verify", "--problem is a check of its own: leave out --all, --case and --dtype");
    Result<Verified> on = open(device);
    if (!on.ok()) return fail("verify", on.status());
    const Arch& arch = on->device->info().arch;

    const Arch chosen_for = options.materialized ? baseline_arch(arch) : arch;
    if (problem_options.given()) {
        Result<Problem> problem = problem_options.problem();
        if (!problem.ok()) return fail("verify", problem.status());
        if (options.configs.empty()) options.configs = {default_config(*problem, chosen_for)};
        return verify_problem(*on, *problem, options, line.json());
    }
    options.only = only;
    options.random_problems = random_problems >= 0 ? random_problems : all ? 200 : 30;
    Count total;
    Json reports = Json::array();
    const std::vector<Config> given = options.configs;
    for (Operation one : *operations) {
        options.operation = one;
        options.configs = given.empty() ? covering_configs(one, chosen_for) : given;
        if (given.empty() && !all) options.configs.resize(1);
        Result<Count> count = verify_suite(*on, options, line.json(), reports);
        if (!count.ok()) return fail("verify", count.status());
        total.passed += count->passed, total.failed += count->failed, total.skipped += count->skipped;
    }
    if (!line.json()) return closing_line(total.passed, total.failed, total.skipped);
    std::printf("%s\n", Json{{"device", on->device_id}, {"seed", options.seed}, {"passed", total.passed}, {"failed", total.failed}, {"skipped", total.skipped}, {"operations", reports}}.dump(2).c_str());
    return total.failed ? exit_no : exit_success;
}

}  // namespace tilewright::cli
