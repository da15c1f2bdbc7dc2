// What tune prints at the end: tables for people, JSON for programs.
#include "cli/tune_output.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tilewright::cli {
namespace {

using Json = nlohmann::ordered_json;

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
    if (m.energy_j > 0) json["energy_j"] = m.energy_j;
    if (m.outcome != Outcome::correct) json["reason"] = m.note;
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
    if (report.occupancy.compared > 0) {
        json["occupancy"] = {{"compared", report.occupancy.compared}, {"agreed", report.occupancy.agreed}};
        if (!report.occupancy.first_difference.empty()) json["occupancy"]["first_difference"] = report.occupancy.first_difference;
    }
    if (report.best) {
        Json ties = Json::array();
        for (const size_t tie : report.ties) ties.push_back(Json::parse(tilewright::to_json(report.trials[tie].config)));
        json.update(Json{{"config", Json::parse(tilewright::to_json(report.trials[*report.best].config))},
                         {"best", to_json(report.trials[*report.best])},
                         {"median_us", report.median_us},
                         {"worst", to_json(report.trials[*report.worst])},
                         {"ties", ties}});
    }
    Json front = Json::array();
    for (const size_t member : report.front) front.push_back(to_json(report.trials[member]));
    json["front"] = front;
    Json failed = Json::array();
    for (const TuneTrial& trial : report.trials)
        if (trial.measurement.outcome != Outcome::correct) failed.push_back(to_json(trial));
    json["failed"] = failed;
    if (!report.device_failure.empty()) json["device_failure"] = report.device_failure;
    json["notes"] = report.notes;
    return json;
}

std::string energy_of(const TuneTrial& trial) {
    char text[40] = "";
    if (trial.measurement.energy_j > 0) std::snprintf(text, sizeof text, "%.3g J  ", trial.measurement.energy_j);
    return text;
}

void print_occupancy(const OccupancyAgreement& occupancy) {
    if (occupancy.compared == 0) return;
    std::printf("occupancy: the model agrees with the device for %lld of %lld candidates", static_cast<long long>(occupancy.agreed), static_cast<long long>(occupancy.compared));
    if (!occupancy.first_difference.empty()) std::printf("; the first that differs: %s", occupancy.first_difference.c_str());
    std::printf("\n");
}

void print_report(const TuneReport& report) {
    std::printf("%s on %s (%s)\n", to_text(report.problem).c_str(), report.device.id.c_str(), report.device.name.c_str());
    std::printf("tried %zu of %lld legal configs in %.1f s (%lld from the database, %lld seeds); stopped: %s\n", report.trials.size(),
                static_cast<long long>(report.legal), report.seconds, static_cast<long long>(report.resumed), static_cast<long long>(report.seeds),
                report.stopped.c_str());
    std::printf("outcomes:");
    for (const auto& [outcome, count] : report.outcomes) std::printf(" %s %lld", outcome.c_str(), static_cast<long long>(count));
    std::fputs(report.rejected.empty() ? "" : "; never tried:", stdout);
    for (const auto& [constraint, count] : report.rejected) std::printf(" %s %lld", constraint.c_str(), static_cast<long long>(count));
    std::printf("\n");
    if (report.best) {
        const auto row = [](const char* what, const TuneTrial& trial) {
            std::printf("%-7s %12.1f us  %s%s\n", what, trial.measurement.median_us, energy_of(trial).c_str(), tilewright::to_json(trial.config).c_str());
        };
        row("best", report.trials[*report.best]);
        for (const size_t tie : report.ties)
            if (tie != *report.best) row("  tied", report.trials[tie]);
        std::printf("%-7s %12.1f us\n", "median", report.median_us);
        row("worst", report.trials[*report.worst]);
    }
    if (report.front.size() > 1) {
        std::printf("no other is both faster and nearer the reference (nor takes less energy, where it was measured) than one of these:\n");
        for (const size_t member : report.front) {
            const TuneTrial& trial = report.trials[member];
            std::printf("%20.1f us  error %.2e  %s%s\n", trial.measurement.median_us, trial.measurement.error, energy_of(trial).c_str(), tilewright::to_json(trial.config).c_str());
        }
    }
    print_occupancy(report.occupancy);
    if (!report.best && report.objective.max_error > 0) std::printf("no correct result was within an error of %g\n", report.objective.max_error);
    for (const std::string& note : report.notes) std::printf("note: %s\n", note.c_str());
    if (!report.device_failure.empty()) std::printf("%s\n", report.device_failure.c_str());
}

Json to_json(const WorkResult& result) {
    if (result.status.ok()) return to_json(result.report);
    return {{"problem", to_text(result.problem)}, {"device", result.device}, {"error", result.status.message()}};
}

void print_table(const std::vector<WorkResult>& results) {
    size_t width = 7, device_width = 0;  // of the device's column, which only several need
    for (const WorkResult& result : results) {
        width = std::max(width, to_text(result.problem).size());
        if (result.device != results[0].device) device_width = 8;
    }
    for (const WorkResult& result : results)
        if (device_width > 0) device_width = std::max(device_width, result.device.size() + 2);
    const auto begin = [&](const std::string& problem, const std::string& device) {
        std::printf("%-*s  ", static_cast<int>(width), problem.c_str());
        if (device_width > 0) std::printf("%-*s", static_cast<int>(device_width), device.c_str());
    };
    begin("problem", "device");
    std::printf("%12s  %13s  %s\n", "best", "tried", "config");
    size_t tuned = 0;
    for (const WorkResult& result : results) {
        const TuneReport& report = result.report;
        begin(to_text(result.problem), result.device);
        if (!result.status.ok()) {
            std::printf("%s\n", result.status.message().c_str());
            continue;
        }
        const std::string tried = std::to_string(report.trials.size()) + "/" + std::to_string(report.legal);
        if (report.best) {
            const TuneTrial& best = report.trials[*report.best];
            std::printf("%9.1f us  %13s  %s\n", best.measurement.median_us, tried.c_str(), tilewright::to_json(best.config).c_str());
            ++tuned;
        } else {
            std::printf("%12s  %13s\n", "none", tried.c_str());
        }
    }
    std::printf("%zu of %zu problems have a winner\n", tuned, results.size());
    OccupancyAgreement all;
    for (const WorkResult& result : results) {
        const OccupancyAgreement& one = result.report.occupancy;
        all.compared += one.compared, all.agreed += one.agreed;
        if (all.first_difference.empty()) all.first_difference = one.first_difference;
    }
    print_occupancy(all);
    for (const WorkResult& result : results) {
        for (const std::string& note : result.report.notes) std::printf("note: %s: %s\n", to_text(result.problem).c_str(), note.c_str());
        if (!result.report.device_failure.empty()) std::printf("%s: %s\n", to_text(result.problem).c_str(), result.report.device_failure.c_str());
    }
}

}  // namespace

void print_results(const std::vector<WorkResult>& results, bool is_list, bool json) {
    if (json) {
        Json all = Json::array();
        for (const WorkResult& result : results) all.push_back(to_json(result));
        // A compiler's words may have been cut within a character.
        std::printf("%s\n", (is_list ? all : all[0]).dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    } else if (is_list) {
        print_table(results);
    } else {
        print_report(results[0].report);
    }
}

}  // namespace tilewright::cli
