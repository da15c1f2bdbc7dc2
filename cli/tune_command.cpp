// tilewright tune: finds the best config of a problem on a device and stores every measurement.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "tuner/strategy.h"
#include "tuner/tune.h"

namespace tilewright::cli {
namespace {

using Json = nlohmann::ordered_json;

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

void on_signal(int) { stop_requested = true; }

std::string own_path() {
    char path[PATH_MAX];
    const ssize_t count = readlink("/proc/self/exe", path, sizeof path);
    return count > 0 ? std::string(path, static_cast<size_t>(count)) : "tilewright";
}

std::string duration_text(double seconds) {
    char text[32];
    if (!std::isfinite(seconds)) return "?";
    if (seconds < 90)
        std::snprintf(text, sizeof text, "%.0f s", seconds);
    else if (seconds < 5400)
        std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
    else
        std::snprintf(text, sizeof text, "%.1f h", seconds / 3600);
    return text;
}

// One line on stderr, rewritten on a terminal, otherwise a new one every few seconds.
class ProgressLine {
public:
    explicit ProgressLine(bool quiet) : quiet_(quiet), terminal_(isatty(2) != 0) {}
    ~ProgressLine() {
        if (terminal_ && shown_) std::fprintf(stderr, "\n");
    }
    void operator()(const TuneProgress& progress) {
        if (quiet_ || (!terminal_ && shown_ && progress.seconds - last_ < 5 && !progress.racing)) return;
        last_ = progress.seconds;
        shown_ = true;
        std::string text = progress.racing ? "racing the best, " : "";
        text += std::to_string(progress.done) + (progress.total > 0 ? "/" + std::to_string(progress.total) : "") + " tried";
        char best[64] = ", none correct yet";
        if (progress.best != nullptr) std::snprintf(best, sizeof best, ", best %.1f us", progress.best->measurement.median_us);
        text += best;
        if (progress.last != nullptr && progress.last->measurement.outcome != Outcome::correct)
            text += std::string(", last: ") + name(progress.last->measurement.outcome);
        text += ", " + duration_text(progress.seconds_left) + " left";
        std::fprintf(stderr, terminal_ ? "\r%-78s" : "%s\n", text.c_str());
        std::fflush(stderr);
    }

private:
    bool quiet_, terminal_, shown_ = false;
    double last_ = 0;
};

// "60s", "5m" are seconds, a plain number is evaluations.
Status parse_budget(const std::string& text, TuneOptions& options) {
    if (text.find_first_not_of("0123456789") != std::string::npos) {
        TILEWRIGHT_ASSIGN_OR_RETURN(options.budget_seconds, parse_duration(text));
        return {};
    }
    char* end = nullptr;
    options.budget_evaluations = std::strtoll(text.c_str(), &end, 10);
    if (options.budget_evaluations < 1)
        return invalid_argument("--budget is '" + text + "'; it is seconds (60s, 5m, 2h) or a number of evaluations, at least 1");
    return {};
}

Json to_json(const TuneTrial& trial) {
    const Measurement& m = trial.measurement;
    Json json = {{"config", Json::parse(tilewright::to_json(trial.config))}, {"outcome", name(m.outcome)}};
    if (m.outcome == Outcome::correct)
        json.update(Json{{"median_us", m.median_us},
                         {"p20_us", m.p20_us},
                         {"p80_us", m.p80_us},
                         {"samples", m.samples},
                         {"error", m.error},
                         {"predicted_us", trial.predicted_us}});
    else
        json["reason"] = m.note;
    return json;
}

Json to_json(const TuneReport& report) {
    Json json = {{"problem", to_text(report.problem)},
                 {"device", report.device.id},
                 {"device_name", report.device.name},
                 {"strategy", report.strategy},
                 {"legal", report.legal},
                 {"tried", report.trials.size()},
                 {"resumed", report.resumed},
                 {"seeds", report.seeds},
                 {"seconds", report.seconds},
                 {"stopped", report.stopped},
                 {"roofline_us", report.roofline_us},
                 {"outcomes", report.outcomes},
                 {"rejected", report.rejected}};
    if (report.best) {
        Json ties = Json::array();
        for (const size_t tie : report.ties) ties.push_back(Json::parse(tilewright::to_json(report.trials[tie].config)));
        json.update(Json{{"config", Json::parse(tilewright::to_json(report.trials[*report.best].config))},
                         {"best", to_json(report.trials[*report.best])},
                         {"median_us", report.median_us},
                         {"worst", to_json(report.trials[*report.worst])},
                         {"ties", ties}});
    }
    Json failed = Json::array();
    for (const TuneTrial& trial : report.trials)
        if (trial.measurement.outcome != Outcome::correct) failed.push_back(to_json(trial));
    json["failed"] = failed;
    if (!report.device_failure.empty()) json["device_failure"] = report.device_failure;
    json["notes"] = report.notes;
    return json;
}

void print(const TuneReport& report) {
    std::printf("%s on %s (%s)\n", to_text(report.problem).c_str(), report.device.id.c_str(), report.device.name.c_str());
    std::printf("tried %zu of %lld legal configs in %.1f s (%lld from the database, %lld seeds); stopped: %s\n", report.trials.size(),
                static_cast<long long>(report.legal), report.seconds, static_cast<long long>(report.resumed), static_cast<long long>(report.seeds),
                report.stopped.c_str());
    std::printf("outcomes:");
    for (const auto& [outcome, count] : report.outcomes) std::printf(" %s %lld", outcome.c_str(), static_cast<long long>(count));
    std::printf("; never tried:");
    for (const auto& [constraint, count] : report.rejected) std::printf(" %s %lld", constraint.c_str(), static_cast<long long>(count));
    std::printf("\n");
    if (report.best) {
        const auto row = [](const char* what, const TuneTrial& trial) {
            std::printf("%-7s %12.1f us  %s\n", what, trial.measurement.median_us, tilewright::to_json(trial.config).c_str());
        };
        row("best", report.trials[*report.best]);
        for (const size_t tie : report.ties)
            if (tie != *report.best) row("  tied", report.trials[tie]);
        std::printf("%-7s %12.1f us\n", "median", report.median_us);
        row("worst", report.trials[*report.worst]);
    }
    for (const std::string& note : report.notes) std::printf("note: %s\n", note.c_str());
    if (!report.device_failure.empty()) std::printf("%s\n", report.device_failure.c_str());
}

}  // namespace

int tune_command(const Arguments& arguments) {
    CommandLine line("tune", "finds the best config of a problem on a device; every result is stored at once and a later run goes on");
    ProblemOptions problem_options;
    std::string device = "cpu:0", budget = "60s", database, cache = "auto";
    TuneOptions options;
    int64_t seed = 1;
    bool no_seeds = false, quiet = false;
    problem_options.add_to(line);
    line.option("device", &device, "ID", "where to measure: cpu:0, nvidia:0, amd:0");
    line.option("budget", &budget, "TIME|N", "seconds (60s, 5m, 2h) or evaluations (200, with those already stored)");
    line.option("strategy", &options.strategy, "NAME[:OPTION=VALUE,...]", "see 'tilewright simulate --list'");
    line.option("seed", &seed, "N", "of the strategy's random numbers");
    line.option("db", &database, "FILE", "database to store in; default: the user's");
    line.option("compile-jobs", &options.compile_jobs, "N", "compilers at the same time; 0: one per core");
    line.option("compile-timeout", &options.compile_timeout_seconds, "SECONDS", "of one candidate");
    line.option("run-timeout", &options.run_timeout_seconds, "SECONDS", "to check and measure one candidate");
    line.option("cache", &cache, "STATE", "of the last-level cache before each launch: cold, warm, or auto (cold on GPUs, warm on CPUs)");
    line.flag("retry-failed", &options.retry_failed, "try again what failed in earlier runs");
    line.flag("no-seeds", &no_seeds, "do not begin with the model's choice and winners of like problems");
    line.flag("quiet", &quiet, "no progress line");
    line.example("tilewright tune --problem forward:b1,hq8,hkv2,sq1024,skv1024,d64,fp32,causal --device cpu:0 --budget 60s --db t.db");
    if (auto exit = line.parse(arguments)) return *exit;
    const Result<Problem> problem = problem_options.problem();
    if (!problem.ok()) return fail("tune", problem.status());
    if (const Status status = parse_budget(budget, options); !status.ok()) return fail("tune", status);
    if (cache == "cold" || cache == "warm")
        options.cache = cache == "cold" ? CacheState::cold : CacheState::warm;
    else if (cache != "auto")
        return fail("tune", "--cache is '" + cache + "'; it must be cold, warm or auto");
    if (database.empty()) database = user_database_path();
    if (database.empty()) return fail("tune", "there is no place for a user database: give --db FILE");
    options.seed = static_cast<uint64_t>(seed);
    options.use_seeds = !no_seeds;
    options.worker_command = {own_path(), "worker"};
    options.stop = &stop_requested;
    ProgressLine progress(quiet);
    options.progress = [&](const TuneProgress& now) { progress(now); };

    Result<Store> store = Store::open(database, StoreMode::create);
    if (!store.ok()) return fail("tune", store.status());
    // The first Ctrl-C lets the current candidate finish; a second one ends the program: what was stored stays.
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    const Result<TuneReport> report = tune(*problem, device, *store, options);
    if (!report.ok()) return fail("tune", report.status());
    if (line.json())
        std::printf("%s\n", to_json(*report).dump(2).c_str());
    else
        print(*report);
    return report->best && report->device_failure.empty() ? exit_success : exit_no;
}

}  // namespace tilewright::cli
