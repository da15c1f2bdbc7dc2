// The tuning loop.
#include "tuner/tune.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <limits>
#include <unordered_map>

#include "core/scratch_directory.h"
#include "model/model.h"
#include "runtime/device_class.h"
#include "tuner/candidate_runner.h"
#include "tuner/compile_pool.h"
#include "tuner/seeds.h"
#include "tuner/strategy.h"
#include "tuner/tune_race.h"
#include "tuner/tune_report.h"

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;

class Tuner {
public:
    Tuner(const TuneOptions& options, Store& store, TuningSpace space, ScratchDirectory scratch, std::unique_ptr<Strategy> strategy, TuneReport& report)
        : options_(options),
          store_(store),
          space_(std::move(space)),
          scratch_(std::move(scratch)),
          search_(space_.search, std::move(strategy), options.seed),
          report_(report) {
        cold_ = options.cache == CacheState::cold || (options.cache == CacheState::automatic && report.device.arch.backend != "cpu");
    }

    Status run(const MeasurementKey& key) {
        key_ = key;
        TILEWRIGHT_RETURN_IF_ERROR(resume());
        std::optional<CompilePool> own;
        if (options_.pool == nullptr) own.emplace(options_.worker_command, scratch_.file("compiler_"), compile_jobs(options_), options_.compile_timeout_seconds);
        CompilePool& pool = options_.pool != nullptr ? *options_.pool : *own;
        CandidateRunner runner({.command = options_.worker_command,
                                .log = scratch_.file("device"),
                                .run_timeout_seconds = options_.run_timeout_seconds,
                                .restart_after_failure = report_.device.arch.backend != "cpu"},
                               request(WorkerAction::prepare));
        if (!over()) TILEWRIGHT_RETURN_IF_ERROR(explore(pool, runner));
        if (report_.stopped.empty()) report_.stopped = stop_requested() ? "interrupted" : search_.history().open().empty() ? "exhausted" : "budget";
        if (report_.device_failure.empty() && !stop_requested()) TILEWRIGHT_RETURN_IF_ERROR(race(pool, runner));
        if (disturbed_ > 1) report_.notes.push_back(std::to_string(disturbed_) + " candidates were measured while the device was disturbed; their notes say by what");
        report_.seconds = seconds();
        return {};
    }

private:
    struct InFlight {
        uint32_t index;
        int64_t ticket;
    };

    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
    bool stop_requested() const { return options_.stop != nullptr && options_.stop->load(); }
    // A tenth of a time budget, ten seconds at most, is kept for the race.
    double race_seconds() const { return options_.budget_seconds > 0 ? std::min(10.0, options_.budget_seconds / 10) : 10; }
    bool over(size_t in_flight = 0) const {
        if (stop_requested()) return true;
        if (options_.budget_seconds > 0 && seconds() >= options_.budget_seconds - race_seconds()) return true;
        return options_.budget_evaluations > 0 && static_cast<int64_t>(report_.trials.size() + in_flight) >= options_.budget_evaluations;
    }

    WorkerRequest request(WorkerAction action) const {
        WorkerRequest result;
        result.action = action;
        result.device = report_.device.id;
        result.problem = report_.problem;
        result.roofline_us = report_.roofline_us;
        result.seconds = options_.measure_seconds;
        result.cold = cold_;
        result.energy = options_.objective.least == Quantity::energy;
        return result;
    }
    std::string file_of(uint32_t index) const { return scratch_.file("candidate_" + std::to_string(index)); }

    // What earlier runs stored for this problem, device and toolchain is told to the search and not tried again.
    Status resume() {
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<Measurement> stored, store_.measurements(key_));
        std::unordered_map<uint32_t, Measurement> latest;
        std::vector<uint32_t> order;
        for (const Measurement& measurement : stored) {
            const auto place = std::ranges::find(space_.configs, measurement.config);
            if (place == space_.configs.end() || measurement.outcome == Outcome::predicted || measurement.outcome == Outcome::imported) continue;
            const auto index = static_cast<uint32_t>(place - space_.configs.begin());
            if (options_.retry_failed && measurement.outcome != Outcome::correct) continue;
            if (options_.objective.least == Quantity::energy && measurement.outcome == Outcome::correct && measurement.energy_j <= 0) continue;  // by a run for time
            if (!latest.contains(index)) order.push_back(index);
            latest[index] = measurement;
        }
        for (const uint32_t index : order) {
            const Measurement& measurement = latest.at(index);
            add_trial(index, measurement, true);
        }
        report_.resumed = static_cast<int64_t>(order.size());
        return {};
    }

    void add_trial(uint32_t index, const Measurement& measurement, bool resumed) {
        report_.trials.push_back({measurement.config, measurement, space_.search.prior()[index], resumed});
        indices_.push_back(index);
        const bool good = counts(options_.objective, measurement);
        const double its_cost = cost(options_.objective, measurement);
        if (good && (!report_.best || its_cost < cost(options_.objective, report_.trials[*report_.best].measurement))) report_.best = report_.trials.size() - 1;
        search_.tell(index, good ? its_cost : failed_cost);
    }

    void show(bool racing) const {
        if (!options_.progress) return;
        options_.progress(progress_of(report_, options_, seconds(), racing));
    }

    Status store_trial(uint32_t index, Measurement measurement) {
        measurement.host = host_;
        measurement.driver = report_.device.driver;
        TILEWRIGHT_ASSIGN_OR_RETURN(measurement.id, store_.add(key_, measurement));
        add_trial(index, measurement, false);
        show(false);
        return {};
    }

    bool shares_processor() const { return report_.device.arch.backend == "cpu"; }

    Status explore(CompilePool& pool, CandidateRunner& runner) {
        std::deque<InFlight> queue;
        const Status status = explore(pool, runner, queue);
        for (const InFlight& each : queue) pool.forget(each.ticket);
        return status;
    }

    void submit(CompilePool& pool, std::deque<InFlight>& queue) {
        const size_t ahead = static_cast<size_t>(pool.workers()) * (shares_processor() ? 1 : 2);
        while (queue.size() < ahead && !over(queue.size())) {
            const auto index = search_.propose();
            if (!index) return;
            WorkerRequest compile = request(WorkerAction::compile);
            compile.configs = {space_.configs[*index]};
            compile.files = {file_of(*index)};
            queue.push_back({*index, pool.submit(std::move(compile))});
        }
    }

    // Compilers and measurements share a CPU, so there they take turns; on a GPU the pool works ahead while candidates run.
    Status explore(CompilePool& pool, CandidateRunner& runner, std::deque<InFlight>& queue) {
        const bool shared = shares_processor();
        submit(pool, queue);
        TILEWRIGHT_RETURN_IF_ERROR(runner.ensure_worker());  // it prepares its data while the first candidates are compiled
        for (; !queue.empty(); submit(pool, queue)) {
            std::deque<std::pair<uint32_t, WorkerReply>> compiled;
            do {
                if (over()) return {};  // time is up or a stop was asked for: what was only compiled is dropped
                const InFlight next = queue.front();
                queue.pop_front();
                compiled.emplace_back(next.index, pool.wait(next.ticket));
            } while (shared && !queue.empty());
            std::optional<CompilePool::Quiet> quiet;
            if (shared) quiet.emplace(pool);
            for (const auto& [index, reply] : compiled) {
                if (over()) return {};
                if (Status status = try_candidate(index, reply, runner); !status.ok()) {
                    if (status.code() != StatusCode::unavailable || runner.workers_lost() == 0) return status;
                    report_.device_failure = status.message();
                    report_.stopped = "device";
                    return {};
                }
            }
            if (over()) return {};
        }
        return {};
    }

    Status try_candidate(uint32_t index, const WorkerReply& compiled, CandidateRunner& runner) {
        Measurement measurement;
        measurement.config = space_.configs[index];
        WorkerReply reply = compiled;
        if (compiled.outcome == Outcome::correct) {
            WorkerRequest evaluate = request(WorkerAction::evaluate);
            evaluate.configs = {measurement.config};
            evaluate.files = {file_of(index)};
            if (report_.best && options_.objective.least == Quantity::time) evaluate.give_up_us = 1.1 * report_.trials[*report_.best].measurement.median_us;
            TILEWRIGHT_ASSIGN_OR_RETURN(reply, runner.evaluate(evaluate));
            compare_occupancy(report_.occupancy, measurement.config, compiled.resident_blocks, reply.resident_blocks);
            if (reply.outcome == Outcome::correct && reply.timings.size() != 1) return {StatusCode::internal, "a worker reported success without a time"};
        }
        measurement.outcome = reply.outcome;
        measurement.error = reply.error;
        measurement.note = reply.outcome == Outcome::correct ? compiled.note : reply.message.substr(0, 2000);
        if (reply.outcome == Outcome::correct) set_timing(measurement, reply.timings[0]);
        set_circumstances(measurement, reply);
        if (!reply.remark.empty() && disturbed_++ == 0) report_.notes.push_back("first seen with candidate " + std::to_string(report_.trials.size() + 1) + ": " + reply.remark);
        return store_trial(index, measurement);
    }

    Status race(CompilePool& pool, CandidateRunner& runner) {
        if (!report_.best) return {};
        show(true);
        return race_finalists({options_, store_, key_, space_, search_.history(), indices_, pool, runner, request(WorkerAction::race),
                               [this](uint32_t index) { return file_of(index); }, race_seconds(), report_});
    }

    const TuneOptions& options_;
    Store& store_;
    TuningSpace space_;
    ScratchDirectory scratch_;
    Search search_;
    TuneReport& report_;
    MeasurementKey key_;
    std::vector<uint32_t> indices_;  // of the report's trials in the space
    const std::string host_ = host_name();
    const Clock::time_point start_ = Clock::now();
    bool cold_ = false;
    int disturbed_ = 0;  // candidates that were measured beside something else, or with clocks held down
};

}  // namespace

Result<TuneReport> tune(const Problem& problem, const std::string& device, Store& store, const TuneOptions& options) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const TuneDevice found, find_tune_device(device));
    return tune(problem, found, store, options);
}

Result<TuneReport> tune(const Problem& problem, const TuneDevice& device, Store& store, const TuneOptions& options) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    if (options.worker_command.empty()) return invalid_argument("no worker command was given");
    TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Strategy> strategy, make_strategy(options.strategy));
    TuneReport report;
    report.problem = problem;
    report.strategy = options.strategy;
    report.device = device.info;
    std::vector<Config> seeds;
    if (options.use_seeds) {
        TILEWRIGHT_ASSIGN_OR_RETURN(seeds, seed_configs(problem, report.device, store, 8));
    }
    report.objective = options.objective;
    TILEWRIGHT_ASSIGN_OR_RETURN(TuningSpace space, tuning_space(problem, report.device.arch, seeds));
    TILEWRIGHT_ASSIGN_OR_RETURN(const MeasurementKey key, store.put_key(problem, device_class(report.device), device.toolchain));
    TILEWRIGHT_ASSIGN_OR_RETURN(ScratchDirectory scratch, ScratchDirectory::create());
    report.legal = static_cast<int64_t>(space.configs.size());
    report.rejected = space.rejected;
    report.rejected_examples = space.rejected_examples;
    report.seeds = static_cast<int64_t>(space.search.seeds().size());
    report.roofline_us = roofline_us(problem, report.device.arch);
    const TuneOptions counted = with_counted_budget(options, report.legal);
    Tuner tuner(counted, store, std::move(space), std::move(scratch), std::move(strategy), report);
    TILEWRIGHT_RETURN_IF_ERROR(tuner.run(key));
    summarize_trials(report);
    if (report.best) TILEWRIGHT_RETURN_IF_ERROR(store.clear_miss(to_text(problem), device_class(report.device)));
    return report;
}

}  // namespace tilewright
