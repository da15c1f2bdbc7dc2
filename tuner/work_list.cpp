// The list, its order, and who stops whom.
#include "tuner/work_list.h"

#include <algorithm>
#include <numeric>

#include "runtime/device_class.h"
#include "tuner/device_tasks.h"
#include "tuner/seeds.h"
#include "tuner/strategy.h"

namespace tilewright {
namespace {

// Places in `problems`, the one with the fewest stored measurements first; among equals as given.
Result<std::vector<size_t>> fair_order(const std::vector<Problem>& problems, const std::string& device, Store& store) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const DeviceInfo info, find_device(device));
    TILEWRIGHT_ASSIGN_OR_RETURN(Backend* const backend, find_backend(info.arch.backend));
    TILEWRIGHT_ASSIGN_OR_RETURN(const Toolchain toolchain, toolchain_of(*backend));
    std::vector<size_t> known, order(problems.size());
    for (const Problem& problem : problems) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const MeasurementKey key, store.put_key(problem, device_class(info), toolchain));
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<Measurement> stored, store.measurements(key));
        known.push_back(stored.size());
    }
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return known[i]; });
    return order;
}

double list_seconds_left(const TuneOptions& options, const TuneProgress& now, double finished_seconds, size_t finished, size_t waiting) {
    double each = now.seconds + now.seconds_left;
    if (finished > 0) each = finished_seconds / static_cast<double>(finished);
    if (options.budget_seconds > 0) each = std::min(each, options.budget_seconds);
    return now.seconds_left + (waiting > 0 ? each * static_cast<double>(waiting) : 0);
}

bool concerns_one_problem(const Status& status) { return status.code() == StatusCode::unsupported || status.code() == StatusCode::invalid_argument; }

}  // namespace

Result<std::vector<Problem>> parse_problem_list(std::string_view text, const std::string& source) {
    std::vector<Problem> problems;
    for (int number = 1; !text.empty(); ++number) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        line = line.substr(0, line.find('#'));
        const size_t first = line.find_first_not_of(" \t\r");
        if (first == std::string_view::npos) continue;
        line = line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
        const auto problem = parse_problem(line);
        if (!problem.ok()) return invalid_argument(source + ", line " + std::to_string(number) + ": " + problem.status().message());
        if (std::ranges::find(problems, *problem) == problems.end()) problems.push_back(*problem);
    }
    if (problems.empty()) return invalid_argument(source + " has no problem: one problem text a line, # begins a comment");
    return problems;
}

Result<std::vector<WorkResult>> tune_all(const std::vector<Problem>& problems, const std::string& device, Store& store, const TuneOptions& options,
                                         const std::function<void(const WorkProgress&, const TuneProgress&)>& progress) {
    if (const auto strategy = make_strategy(options.strategy); !strategy.ok()) return strategy.status();
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<size_t> order, fair_order(problems, device, store));
    std::vector<WorkResult> results;
    for (const Problem& problem : problems) results.push_back({problem, {}, {}});

    Status stopped;  // why the rest is not tried
    double finished_seconds = 0;
    for (size_t place = 0; place < order.size(); ++place) {
        WorkResult& result = results[order[place]];
        if (stopped.ok() && options.stop != nullptr && options.stop->load()) stopped = {StatusCode::unavailable, "not tried: interrupted"};
        if (!stopped.ok()) {
            result.status = stopped;
            continue;
        }
        TuneOptions mine = options;
        mine.progress = [&](const TuneProgress& now) {
            if (!progress) return;
            const size_t waiting = order.size() - place - 1;
            progress({place + 1, order.size(), &result.problem, list_seconds_left(options, now, finished_seconds, place, waiting)}, now);
        };
        auto report = tune(result.problem, device, store, mine);
        if (!report.ok()) {
            result.status = report.status();
            if (!concerns_one_problem(result.status)) stopped = {result.status.code(), "not tried: " + result.status.message()};
            continue;
        }
        result.report = *std::move(report);
        finished_seconds += result.report.seconds;
        if (!result.report.device_failure.empty()) stopped = {StatusCode::unavailable, "not tried: " + result.report.device_failure};
    }
    return results;
}

}  // namespace tilewright
