// A sample of rows, through the workers that tuning uses.
#include "tuner/remeasure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "core/scratch_directory.h"
#include "model/model.h"
#include "runtime/device_class.h"
#include "tuner/candidate_runner.h"
#include "tuner/device_tasks.h"

namespace tilewright {
namespace {

// Reservoir sampling: every row is as likely, in one pass and with little memory.
Status draw(Store& store, const DeviceClass& device, const RemeasureOptions& options, RemeasureReport& report) {
    std::mt19937_64 random(options.seed);
    const auto take = [&](const MeasurementRow& row) {
        if (row.device != device || row.measurement.outcome != Outcome::correct) return Status();
        ++report.rows;
        Remeasured drawn;
        drawn.row = row;
        if (static_cast<int64_t>(report.sample.size()) < options.sample) {
            report.sample.push_back(std::move(drawn));
        } else if (const auto place = static_cast<int64_t>(random() % static_cast<uint64_t>(report.rows)); place < options.sample) {
            report.sample[static_cast<size_t>(place)] = std::move(drawn);
        }
        return Status();
    };
    return options.winners ? store.for_each_best(take) : store.for_each(take);
}

Result<WorkerReply> time_again(CandidateRunner& runner, WorkerRequest request, const MeasurementRow& row, const std::string& file) {
    request.files = {file};
    request.configs = {row.measurement.config};
    request.action = WorkerAction::compile;
    TILEWRIGHT_ASSIGN_OR_RETURN(WorkerReply reply, runner.evaluate(request));
    if (reply.outcome != Outcome::correct) return reply;
    request.action = WorkerAction::evaluate;
    return runner.evaluate(request);
}

}  // namespace

std::string disagreement(const Measurement& before, const WorkerReply& now, double tolerance) {
    char text[160];
    if (now.outcome != Outcome::correct) return std::string(name(now.outcome)) + ": " + now.message;
    if (now.timings.size() != 1) return "it was not timed";
    const Timing& timing = now.timings[0];
    const double spreads = before.p80_us - before.p20_us + timing.p80_us - timing.p20_us;
    const double difference = std::abs(timing.median_us - before.median_us);
    if (difference <= tolerance * before.median_us || difference <= spreads) return {};
    std::snprintf(text, sizeof text, "%.2f us then, %.2f us now", before.median_us, timing.median_us);
    return text;
}

Result<RemeasureReport> remeasure(Store& store, const std::string& device, const RemeasureOptions& options) {
    if (options.sample < 1) return invalid_argument("a sample of " + std::to_string(options.sample) + " rows is none");
    if (!(options.tolerance >= 0)) return invalid_argument("a tolerance of " + std::to_string(options.tolerance) + " is negative");
    TILEWRIGHT_ASSIGN_OR_RETURN(const DeviceInfo info, find_device(device));
    TILEWRIGHT_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::create());
    RemeasureReport report;
    TILEWRIGHT_RETURN_IF_ERROR(draw(store, device_class(info), options, report));
    if (report.sample.empty()) return Status(StatusCode::not_found, "there is no correct measurement on " + info.name + " with " + std::to_string(info.arch.units) + " units");
    // A worker holds one problem's data: rows of a problem follow each other.
    std::stable_sort(report.sample.begin(), report.sample.end(), [](const Remeasured& a, const Remeasured& b) { return to_text(a.row.problem) < to_text(b.row.problem); });
    std::unique_ptr<CandidateRunner> runner;
    for (size_t i = 0; i < report.sample.size(); ++i) {
        Remeasured& again = report.sample[i];
        WorkerRequest request;
        request.device = device;
        request.problem = again.row.problem;
        request.seconds = options.seconds;
        request.roofline_us = roofline_us(request.problem, info.arch);
        request.cold = info.arch.backend != "cpu";
        if (i == 0 || report.sample[i - 1].row.problem != request.problem) {
            runner = std::make_unique<CandidateRunner>(
                RunnerOptions{.command = options.worker_command, .log = scratch.file("device"), .run_timeout_seconds = options.run_timeout_seconds}, request);
        }
        TILEWRIGHT_ASSIGN_OR_RETURN(again.now, time_again(*runner, request, again.row, scratch.file("object")));
        again.disagreement = disagreement(again.row.measurement, again.now, options.tolerance);
        if (again.now.timings.size() == 1) again.ratio = again.now.timings[0].median_us / again.row.measurement.median_us;
    }
    return report;
}

}  // namespace tilewright
