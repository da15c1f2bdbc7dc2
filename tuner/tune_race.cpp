// Finalists against each other.
#include "tuner/tune_race.h"

#include <algorithm>
#include <ctime>
#include <optional>

#include "runtime/device_class.h"
#include "tuner/tune_report.h"

namespace tilewright {
namespace {

// The earlier race's winner, if there was one.
Status take_stored_winner(const RaceRun& run) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const Measurement stored, run.store.best(run.report.problem, device_class(run.report.device)));
    for (size_t i = 0; i < run.report.trials.size(); ++i)
        if (run.report.trials[i].config == stored.config) run.report.best = i;
    run.report.ties = {*run.report.best};
    return {};
}

// Of the finalists those that can be raced: what an earlier run measured is compiled again.
std::vector<size_t> ready_racers(const RaceRun& run, const std::vector<size_t>& finalists, WorkerRequest& race) {
    std::vector<size_t> racers;
    for (const size_t finalist : finalists) {
        const uint32_t index = run.indices[finalist];
        const Config& config = run.space.configs[index];
        if (run.report.trials[finalist].resumed) {
            WorkerRequest compile = run.request;
            compile.action = WorkerAction::compile;
            compile.configs = {config};
            compile.files = {run.file_of(index)};
            if (run.pool.wait(run.pool.submit(std::move(compile))).outcome != Outcome::correct) continue;
        }
        race.configs.push_back(config);
        race.files.push_back(run.file_of(index));
        racers.push_back(finalist);
    }
    return racers;
}

// The winner as settled, then the others by time.
Status store_race(const RaceRun& run, const std::vector<size_t>& racers, const std::vector<Timing>& timings, int64_t began) {
    TuneReport& report = run.report;
    std::vector<size_t> placed;
    for (size_t i = 0; i < racers.size(); ++i)
        if (timings[i].samples > 0) placed.push_back(racers[i]);
    std::ranges::sort(placed, {}, [&](size_t i) { return std::pair(i != *report.best, report.trials[i].measurement.median_us); });
    for (size_t i = 0; i < placed.size(); ++i) {
        Measurement& measurement = report.trials[placed[i]].measurement;
        measurement.race = began;
        measurement.place = static_cast<int>(i) + 1;
        measurement.measured_at = 0;
        measurement.note = "raced";
        measurement.host = host_name();
        measurement.driver = report.device.driver;
        TILEWRIGHT_ASSIGN_OR_RETURN(measurement.id, run.store.add(run.key, measurement));
    }
    return {};
}

}  // namespace

Status race_finalists(const RaceRun& run) {
    TuneReport& report = run.report;
    const std::vector<size_t> finalists = finalists_of(report, static_cast<size_t>(std::max(1, run.options.finalists)));
    report.ties = {*report.best};
    const bool constrained = !is_plain(report.objective);
    if (constrained && static_cast<int64_t>(report.trials.size()) == report.resumed) return {};
    if (static_cast<int64_t>(report.trials.size()) == report.resumed) return take_stored_winner(run);
    if (finalists.size() < 2) return {};

    WorkerRequest race = run.request;
    race.action = WorkerAction::race;
    race.seconds = run.seconds;
    const std::vector<size_t> racers = ready_racers(run, finalists, race);
    const int64_t began = std::time(nullptr);
    std::optional<CompilePool::Quiet> quiet;
    if (report.device.arch.backend == "cpu") quiet.emplace(run.pool);
    const auto raced = run.runner.race(race);
    if (!raced.ok() || raced->outcome != Outcome::correct || raced->timings.size() != racers.size()) {
        report.notes.push_back("the finalists could not be measured in turns: " + (raced.ok() ? raced->message : raced.status().message()));
        return {};
    }
    for (size_t i = 0; i < racers.size(); ++i) {
        if (raced->timings[i].samples == 0) continue;
        Measurement& measurement = report.trials[racers[i]].measurement;
        if (race.energy) measurement.energy_j = raced->timings[i].median_us / 1e6;
        else set_timing(measurement, raced->timings[i]);
    }
    if (!raced->remark.empty()) report.notes.push_back("during the race: " + raced->remark);
    report.ties.clear();
    for (const size_t tie : raced->ties) report.ties.push_back(racers[tie]);
    settle_ties(report, run.space.search, run.history, run.indices);
    // Places are what lookups without conditions go by.
    if (constrained) return {};
    return store_race(run, racers, raced->timings, began);
}

}  // namespace tilewright
