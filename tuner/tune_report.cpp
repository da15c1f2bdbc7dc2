// Finalists, ties, totals and progress of a tuning run.
#include "tuner/tune_report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <tuple>

namespace tilewright {

double cost(const TuneObjective& objective, const Measurement& measurement) {
    return objective.least == Quantity::energy ? measurement.energy_j * 1e6 : measurement.median_us;
}

bool counts(const TuneObjective& objective, const Measurement& measurement) {
    if (objective.least == Quantity::energy && measurement.energy_j <= 0) return false;
    return measurement.outcome == Outcome::correct && (objective.max_error <= 0 || (measurement.error >= 0 && measurement.error <= objective.max_error));
}

std::vector<size_t> finalists_of(const TuneReport& report, size_t limit) {
    const auto cost_of = [&](size_t i) { return cost(report.objective, report.trials[i].measurement); };
    const double most = 1.1 * cost_of(*report.best);
    std::vector<size_t> finalists;
    for (size_t i = 0; i < report.trials.size(); ++i)
        if (counts(report.objective, report.trials[i].measurement)) finalists.push_back(i);
    std::ranges::stable_sort(finalists, {}, cost_of);
    // Two at least: only a race replaces the winner of an earlier run's race.
    while (finalists.size() > 2 && cost_of(finalists.back()) > most) finalists.pop_back();
    finalists.resize(std::min(finalists.size(), limit));
    return finalists;
}

void set_timing(Measurement& measurement, const Timing& timing) {
    measurement.median_us = timing.median_us;
    measurement.p20_us = timing.p20_us;
    measurement.p80_us = timing.p80_us;
    measurement.samples = timing.samples;
}

void set_circumstances(Measurement& measurement, const WorkerReply& reply) {
    measurement.clock_mhz = reply.clock_mhz, measurement.memory_clock_mhz = reply.memory_clock_mhz, measurement.temperature_c = reply.temperature_c;
    measurement.energy_j = reply.energy_j;
    measurement.exclusive = reply.exclusive;
    if (!reply.remark.empty()) measurement.note += (measurement.note.empty() ? "" : "; ") + reply.remark;
}

void compare_occupancy(OccupancyAgreement& agreement, const Config& config, const std::vector<int>& by_model, const std::vector<int>& by_device) {
    if (by_device.empty() || by_model.size() != by_device.size()) return;
    ++agreement.compared;
    const auto [model, device] = std::ranges::mismatch(by_model, by_device);
    if (model == by_model.end()) {
        ++agreement.agreed;
    } else if (agreement.first_difference.empty()) {
        const std::string kernel = by_model.size() > 1 ? " in kernel " + std::to_string(model - by_model.begin() + 1) + " of " + std::to_string(by_model.size()) : "";
        agreement.first_difference = to_json(config) + kernel + ": " + std::to_string(*model) + " blocks by the model, " + std::to_string(*device) + " by the device";
    }
}

int compile_jobs(const TuneOptions& options) {
    return options.compile_jobs > 0 ? options.compile_jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

TuneOptions with_counted_budget(TuneOptions options, int64_t legal) {
    if (options.budget_fraction <= 0) return options;
    const int64_t count = std::max<int64_t>(1, std::llround(std::ceil(options.budget_fraction * static_cast<double>(legal) - 1e-9)));
    options.budget_evaluations = options.budget_evaluations > 0 ? std::min(options.budget_evaluations, count) : count;
    return options;
}

std::string host_name() {
    char name[256] = "";
    return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

void settle_ties(TuneReport& report, const SearchSpace& space, const SearchHistory& history, const std::vector<uint32_t>& indices) {
    double lowest = std::numeric_limits<double>::max();
    size_t winner = report.ties[0];
    for (const size_t tie : report.ties) {
        double sum = cost(report.objective, report.trials[tie].measurement);
        int count = 1;
        for (const uint32_t neighbour : space.neighbours(indices[tie], Neighbourhood::step))
            if (const auto cost = history.cost(neighbour); cost && *cost < failed_cost) {
                sum += *cost;
                ++count;
            }
        if (sum / count >= lowest) continue;
        lowest = sum / count;
        winner = tie;
    }
    std::erase(report.ties, winner);
    report.ties.insert(report.ties.begin(), winner);
    report.best = winner;
}

namespace {

std::vector<size_t> front_of(const TuneReport& report) {
    std::vector<size_t> sorted, front;
    const auto measurement = [&](size_t i) -> const Measurement& { return report.trials[i].measurement; };
    for (size_t i = 0; i < report.trials.size(); ++i)
        if (measurement(i).outcome == Outcome::correct && measurement(i).error >= 0) sorted.push_back(i);
    std::ranges::stable_sort(sorted, {}, [&](size_t i) { return std::tuple(measurement(i).median_us, measurement(i).error, measurement(i).energy_j); });
    const auto beats = [&](size_t faster, size_t i) {
        const Measurement &a = measurement(faster), &b = measurement(i);
        const bool compared = a.energy_j > 0 && b.energy_j > 0;
        return a.error <= b.error && (!compared || a.energy_j <= b.energy_j);
    };
    for (const size_t i : sorted)
        if (std::ranges::none_of(front, [&](size_t faster) { return beats(faster, i); })) front.push_back(i);
    return front;
}

}  // namespace

void summarize_trials(TuneReport& report) {
    std::vector<double> times;
    for (size_t i = 0; i < report.trials.size(); ++i) {
        const Measurement& measurement = report.trials[i].measurement;
        ++report.outcomes[name(measurement.outcome)];
        if (measurement.outcome != Outcome::correct && measurement.outcome != Outcome::predicted) continue;
        times.push_back(measurement.median_us);
        if (!report.worst || measurement.median_us > report.trials[*report.worst].measurement.median_us) report.worst = i;
    }
    report.front = front_of(report);
    if (times.empty()) return;
    std::ranges::sort(times);
    report.median_us = times[times.size() / 2];
}

TuneProgress progress_of(const TuneReport& report, const TuneOptions& options, double seconds, bool racing) {
    TuneProgress progress;
    progress.done = static_cast<int64_t>(report.trials.size());
    progress.total = options.budget_evaluations > 0 ? std::min(options.budget_evaluations, report.legal) : options.budget_seconds > 0 ? 0 : report.legal;
    progress.seconds = seconds;
    const auto mine = static_cast<double>(progress.done - report.resumed);
    progress.seconds_left = std::numeric_limits<double>::infinity();
    if (progress.total > 0 && mine > 0) progress.seconds_left = progress.seconds / mine * static_cast<double>(progress.total - progress.done);
    if (options.budget_seconds > 0) progress.seconds_left = std::min(progress.seconds_left, std::max(0.0, options.budget_seconds - progress.seconds));
    if (!report.trials.empty()) progress.last = &report.trials.back();
    if (report.best) progress.best = &report.trials[*report.best];
    progress.racing = racing;
    return progress;
}

}  // namespace tilewright
