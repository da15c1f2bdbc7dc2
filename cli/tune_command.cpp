// tilewright tune: finds the best configs of problems on a device and stores every measurement.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/cli.h"
#include "cli/tune_output.h"
#include "core/scratch_directory.h"
#include "tuner/html_report.h"
#include "tuner/predict.h"

namespace tilewright::cli {
namespace {

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

void on_signal(int) { stop_requested = true; }

std::string own_path() {
    char path[PATH_MAX];
    const ssize_t count = readlink("/proc/self/exe", path, sizeof path);
    return count > 0 ? std::string(path, static_cast<size_t>(count)) : "tilewright";
}

// "60s", "5m" are seconds, "10%" a part of the legal configs, a plain number is evaluations.
Status parse_budget(const std::string& text, TuneOptions& options) {
    if (text.ends_with('%')) {
        char* rest = nullptr;
        options.budget_fraction = std::strtod(text.c_str(), &rest) / 100;
        if (rest + 1 == text.c_str() + text.size() && options.budget_fraction > 0 && options.budget_fraction <= 1) return {};
        return invalid_argument("--budget is '" + text + "'; a part of the legal configs is above 0% and at most 100%");
    }
    if (text.find_first_not_of("0123456789") != std::string::npos) {
        TILEWRIGHT_ASSIGN_OR_RETURN(options.budget_seconds, parse_duration(text));
        return {};
    }
    char* end = nullptr;
    options.budget_evaluations = std::strtoll(text.c_str(), &end, 10);
    if (options.budget_evaluations < 1)
        return invalid_argument("--budget is '" + text + "'; it is seconds (60s, 5m, 2h), a part of the legal configs (10%) or a number of evaluations, at least 1");
    return {};
}

// invalid_argument if no file can be written there; asked before the work is done.
Status check_writable(const std::string& path) {
    const bool existed = access(path.c_str(), F_OK) == 0;
    std::FILE* const file = std::fopen(path.c_str(), "a");
    if (file == nullptr) return invalid_argument("--report: cannot write " + path + ": " + std::strerror(errno));
    std::fclose(file);
    if (!existed) std::remove(path.c_str());
    return {};
}

// Each problem for the architecture; the budget is each one's.
Result<std::vector<WorkResult>> predict_all(const std::vector<Problem>& problems, const std::string& arch_name, Store& store, TuneOptions options,
                                            const std::function<void(const WorkProgress&, const TuneProgress&)>& progress) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const Arch arch, arch_named(arch_name));
    std::vector<WorkResult> results;
    for (size_t i = 0; i < problems.size(); ++i) {
        options.progress = [&](const TuneProgress& now) { progress({arch_name, i + 1, problems.size(), &problems[i], now.seconds_left}, now); };
        Result<TuneReport> report = predict_space(problems[i], arch, store, options);
        if (!report.ok() && report.status().code() != StatusCode::unsupported) return report.status();
        results.push_back(report.ok() ? WorkResult{problems[i], {}, *std::move(report), arch_name} : WorkResult{problems[i], report.status(), {}, arch_name});
    }
    return results;
}

// The problems of each group of devices: those given and, if wanted, those that lookups missed on it.
Result<std::vector<WorkGroup>> work_of(const std::vector<TuneDevice>& devices, const std::vector<Problem>& given, bool from_misses, Store& store) {
    std::vector<WorkGroup> groups = group_devices(devices, given);
    size_t count = 0;
    for (WorkGroup& group : groups) {
        if (from_misses) {
            TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<Problem> missed, missed_problems(store, group.devices[0]));
            for (const Problem& problem : missed)
                if (std::ranges::find(group.problems, problem) == group.problems.end()) group.problems.push_back(problem);
        }
        count += group.problems.size();
    }
    if (count == 0) return Status(StatusCode::not_found, "no lookup on " + devices[0].info.id + (devices.size() > 1 ? " and the others" : "") + " missed a problem: nothing to tune");
    return groups;
}

}  // namespace

int tune_command(const Arguments& arguments) {
    CommandLine line("tune", "finds the best config of one or more problems on a device; every result is stored at once and a later run goes on");
    ProblemListOptions problem_options;
    std::string device = "cpu:0", arch_name, budget = "60s", database, cache = "auto", objective = "time", report_path;
    TuneOptions options;
    int64_t seed = 1;
    bool no_seeds = false, quiet = false, predict_only = false, from_misses = false;
    problem_options.add_to(line);
    line.flag("from-misses", &from_misses, "tune what lookups asked the database for and did not find on these devices, the most asked first");
    line.option("device", &device, "ID[,ID...]|all", "where to measure: cpu:0, nvidia:0, amd:0; several work at the same time; all: every GPU, or the CPU where there is none");
    line.option("budget", &budget, "TIME|N|P%", "of each problem: seconds (60s, 5m, 2h), evaluations (200, with those already stored), or a part of the legal configs (10%)");
    line.option("strategy", &options.strategy, "NAME[:OPTION=VALUE,...]", "see 'tilewright simulate --list'");
    line.option("seed", &seed, "N", "of the strategy's random numbers");
    line.option("db", &database, "FILE", "database to store in; default: the user's");
    line.option("report", &report_path, "FILE.html", "write a page with figures and tables of the run");
    line.option("compile-jobs", &options.compile_jobs, "N", "compilers at the same time; 0: one per core");
    line.option("compile-timeout", &options.compile_timeout_seconds, "SECONDS", "of one candidate");
    line.option("run-timeout", &options.run_timeout_seconds, "SECONDS", "to check and measure one candidate");
    line.option("finalists", &options.finalists, "N", "so many of the best are measured in turns at the end; 1: none");
    line.option("objective", &objective, "time|energy", "what a winner has least of; energy: of a launch, by NVML or AMD SMI");
    line.option("max-error", &options.objective.max_error, "X", "of a winner's result, relative to the reference; 0: what the check lets pass");
    line.option("cache", &cache, "STATE", "of the last-level cache before each launch: cold, warm, or auto (cold on GPUs, warm on CPUs)");
    line.flag("predict", &predict_only, "with --arch: compile the space, rank it by the model and a static estimate of the main loop; no device is needed");
    line.option("arch", &arch_name, "NAME", "with --predict: what to compile for");
    line.flag("retry-failed", &options.retry_failed, "try again what failed in earlier runs");
    line.flag("no-seeds", &no_seeds, "do not begin with the model's choice and winners of like problems");
    line.flag("quiet", &quiet, "no progress line");
    line.example("tilewright tune --problem forward:b1,hq8,hkv2,sq1024,skv1024,d64,fp32,causal --device cpu:0 --budget 60s --db t.db");
    line.example("tilewright tune --arch gfx942 --problem forward:b4,hq16,hkv16,sq4096,skv4096,d128,bf16 --predict --budget 5m --db t.db");
    line.example("tilewright tune --problems problems.txt --device all --budget 10m --report report.html");
    line.example("tilewright tune --from-misses --device nvidia:0 --budget 10%");
    if (auto exit = line.parse(arguments)) return *exit;
    const Result<std::vector<Problem>> problems = from_misses && !problem_options.given() ? std::vector<Problem>() : problem_options.problems();
    if (!problems.ok()) return fail("tune", problems.status());
    if (const Status status = parse_budget(budget, options); !status.ok()) return fail("tune", status);
    if (cache == "cold" || cache == "warm")
        options.cache = cache == "cold" ? CacheState::cold : CacheState::warm;
    else if (cache != "auto")
        return fail("tune", "--cache is '" + cache + "'; it must be cold, warm or auto");
    if (objective != "time" && objective != "energy") return fail("tune", "--objective is '" + objective + "'; it must be time or energy");
    options.objective.least = objective == "energy" ? Quantity::energy : Quantity::time;
    if (database.empty()) database = user_database_path();
    if (database.empty()) return fail("tune", "there is no place for a user database: give --db FILE");
    options.seed = static_cast<uint64_t>(seed);
    options.use_seeds = !no_seeds;
    options.worker_command = {own_path(), "worker"};
    options.stop = &stop_requested;
    if (predict_only && from_misses) return fail("tune", "--from-misses is about devices; --predict uses none");
    if (predict_only != !arch_name.empty()) return fail("tune", "--predict and --arch go together: nothing is measured without a device");
    if (predict_only && !report_path.empty()) return fail("tune", "--report shows measurements; --predict makes none");
    if (!report_path.empty())
        if (const Status status = check_writable(report_path); !status.ok()) return fail("tune", status);

    Result<Store> store = Store::open(database, StoreMode::create);
    if (!store.ok()) return fail("tune", store.status());
    // The first Ctrl-C lets the current candidate finish; a second one ends the program: what was stored stays.
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    bool is_list = problem_options.is_list();
    const auto results = [&]() -> Result<std::vector<WorkResult>> {
        ProgressLine progress(quiet);  // ends its line before results are printed
        if (predict_only)
            return predict_all(*problems, arch_name, *store, options, [&](const WorkProgress& work, const TuneProgress& now) { progress.show(work, now); });
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<TuneDevice> devices, find_tune_devices(device));
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<WorkGroup> groups, work_of(devices, *problems, from_misses, *store));
        is_list = is_list || from_misses || groups.size() > 1;
        return tune_all(groups, database, options, [&](const WorkProgress& work, const TuneProgress& now) { progress.show(work, now); });
    }();
    if (!results.ok()) return fail("tune", results.status());
    if (!is_list && !results->front().status.ok()) return fail("tune", results->front().status);
    print_results(*results, is_list, line.json());
    if (!report_path.empty())
        if (const Status status = write_file(report_path, html_report(*results)); !status.ok()) return fail("tune", status);
    for (const WorkResult& result : *results)
        if (!result.status.ok() || !result.report.best || !result.report.device_failure.empty()) return exit_no;
    return exit_success;
}

}  // namespace tilewright::cli
