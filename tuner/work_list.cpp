// The list, its order, who takes which problem, and who stops whom.
#include "tuner/work_list.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/scratch_directory.h"
#include "runtime/device_class.h"
#include "tuner/compile_pool.h"
#include "tuner/strategy.h"
#include "tuner/tune_report.h"

namespace tilewright {
namespace {

// Places in the group's problems, the one with the fewest stored measurements first; among equals as given.
Result<std::deque<size_t>> fair_order(const WorkGroup& group, Store& store) {
    std::vector<size_t> known;
    std::deque<size_t> order(group.problems.size());
    for (const Problem& problem : group.problems) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const MeasurementKey key, store.put_key(problem, device_class(group.devices[0].info), group.devices[0].toolchain));
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<Measurement> stored, store.measurements(key));
        known.push_back(stored.size());
    }
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return known[i]; });
    return order;
}

bool concerns_one_problem(const Status& status) { return status.code() == StatusCode::unsupported || status.code() == StatusCode::invalid_argument; }

// A group at work. Its members are guarded by Work's mutex.
struct Progress {
    std::deque<size_t> waiting;  // places in the problems, in their order
    size_t begun = 0, finished = 0;
    double finished_seconds = 0;
    Status stopped;      // why the rest is not tried
    WorkResult* first = nullptr;  // the results of the group's problems, one behind the other

    double seconds_left(const TuneOptions& options, const TuneProgress& now, size_t devices) const {
        double each = now.seconds + now.seconds_left;
        if (finished > 0) each = finished_seconds / static_cast<double>(finished);
        if (options.budget_seconds > 0) each = std::min(each, options.budget_seconds);
        return now.seconds_left + (waiting.empty() ? 0 : each * static_cast<double>(waiting.size()) / static_cast<double>(devices));
    }
};

class Work {
public:
    Work(const std::vector<WorkGroup>& groups, const std::string& database, const TuneOptions& options, const WorkProgressSink& progress)
        : groups_(groups), database_(database), options_(options), progress_(progress) {}

    Result<std::vector<WorkResult>> run() {
        size_t count = 0;
        for (const WorkGroup& group : groups_) count += group.problems.size();
        results_.reserve(count);  // addresses stay
        TILEWRIGHT_RETURN_IF_ERROR(prepare());
        TILEWRIGHT_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::create());
        CompilePool pool(options_.worker_command, scratch.file("compiler_"), compile_jobs(options_), options_.compile_timeout_seconds);
        options_.pool = &pool;
        {
            std::vector<std::jthread> threads;
            for (size_t group = 0; group < groups_.size(); ++group)
                for (const TuneDevice& device : groups_[group].devices) threads.emplace_back([this, group, &device] { serve(groups_[group], state_[group], device); });
        }
        for (Progress& group : state_)
            for (const size_t left : group.waiting) group.first[left].status = group.stopped;
        return std::move(results_);
    }

private:
    Status prepare() {
        TILEWRIGHT_ASSIGN_OR_RETURN(Store store, Store::open(database_, StoreMode::create));
        for (const WorkGroup& group : groups_) {
            Progress& state = state_.emplace_back();
            TILEWRIGHT_ASSIGN_OR_RETURN(state.waiting, fair_order(group, store));
            state.first = results_.data() + results_.size();
            for (const Problem& problem : group.problems) results_.push_back({problem, {}, {}, group.devices[0].info.id});
        }
        return {};
    }

    // One device until its group has nothing left, or it fails.
    void serve(const WorkGroup& group, Progress& state, const TuneDevice& device) {
        Result<Store> store = Store::open(database_, StoreMode::write);
        std::unique_lock lock(mutex_);
        if (!store.ok()) return stop(state, store.status().message());
        while (!state.waiting.empty()) {
            if (options_.stop != nullptr && options_.stop->load()) return stop(state, "interrupted");
            if (failed_) return stop(state, failure_);
            WorkResult& result = state.first[state.waiting.front()];
            state.waiting.pop_front();
            result.device = device.info.id;
            const size_t number = ++state.begun;
            lock.unlock();
            TuneOptions mine = options_;
            mine.progress = [&](const TuneProgress& now) {
                const std::scoped_lock showing(mutex_);
                if (progress_) progress_({device.info.id, number, group.problems.size(), &result.problem, state.seconds_left(options_, now, group.devices.size())}, now);
            };
            Result<TuneReport> report = tune(result.problem, device, *store, mine);
            lock.lock();
            if (!report.ok()) {
                result.status = report.status();
                if (concerns_one_problem(result.status)) continue;
                if (result.status.code() == StatusCode::io) failed_ = true, failure_ = result.status.message();
                return stop(state, result.status.message());
            }
            result.report = *std::move(report);
            ++state.finished;
            state.finished_seconds += result.report.seconds;
            if (!result.report.device_failure.empty()) return stop(state, result.report.device_failure);
        }
    }

    // The words count if nobody of the group goes on.
    static void stop(Progress& state, const std::string& why) { state.stopped = {StatusCode::unavailable, "not tried: " + why}; }

    const std::vector<WorkGroup>& groups_;
    const std::string database_;
    TuneOptions options_;
    const WorkProgressSink& progress_;
    std::mutex mutex_;  // over what follows, and the progress sink
    std::deque<Progress> state_;
    std::vector<WorkResult> results_;
    bool failed_ = false;  // the database: nobody can go on
    std::string failure_;
};

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

std::vector<WorkGroup> group_devices(const std::vector<TuneDevice>& devices, const std::vector<Problem>& problems) {
    std::vector<WorkGroup> groups;
    for (const TuneDevice& device : devices) {
        const auto same = std::ranges::find_if(groups, [&](const WorkGroup& group) {
            return device_class(group.devices[0].info) == device_class(device.info) && group.devices[0].toolchain == device.toolchain;
        });
        if (same == groups.end())
            groups.push_back({{device}, problems});
        else
            same->devices.push_back(device);
    }
    return groups;
}

Result<std::vector<Problem>> missed_problems(Store& store, const TuneDevice& device) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<Miss> misses, store.misses());
    std::vector<Problem> problems;
    for (const Miss& miss : misses) {
        if (miss.device != device_class(device.info)) continue;
        if (const auto problem = parse_problem(miss.problem); problem.ok()) problems.push_back(*problem);
    }
    return problems;
}

Result<std::vector<WorkResult>> tune_all(const std::vector<WorkGroup>& groups, const std::string& database, const TuneOptions& options,
                                         const WorkProgressSink& progress) {
    if (const auto strategy = make_strategy(options.strategy); !strategy.ok()) return strategy.status();
    return Work(groups, database, options, progress).run();
}

}  // namespace tilewright
