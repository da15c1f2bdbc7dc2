// Prediction of a candidate, and of a whole space.
#include "tuner/predict.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <numeric>

#include "backends/amd/main_loop.h"
#include "core/scratch_directory.h"
#include "model/model.h"
#include "runtime/code_cache.h"
#include "runtime/device_class.h"
#include "tuner/compile_pool.h"
#include "tuner/seeds.h"
#include "tuner/tune_report.h"

namespace tilewright {
namespace {

// The model's time with the main loop's own cycles in place of its estimate of the units' work. A SIMD with several waves overlaps them, up
// to what its busiest part can do; too few waves leave SIMDs idle.
double time_with_loop(const Prediction& model, const amd::MainLoop& loop, int threads, const Arch& arch) {
    const double blocks = std::min<double>(model.occupancy.blocks, std::ceil(static_cast<double>(model.tiles) / arch.units));
    const double waves = blocks * threads / arch.warp_size / arch.simds_per_unit;  // of a SIMD
    const double cycles = std::max(loop.busy_cycles, loop.cycles / std::max(1.0, waves));
    const double simds = arch.units * arch.simds_per_unit * std::min(1.0, waves);
    const double busy = model.work.matrix_flops / loop.matrix_flops * cycles / (simds * arch.clock_ghz * 1e3) / model.balance + std::ceil(model.waves);
    const double moved = std::max(model.cache_us, model.memory_us), launch = 4;
    return launch + std::max(busy, moved) + 0.1 * std::min(busy, moved);
}

std::string describe(const Resources& resources, const Prediction& model, const std::string& loop) {
    std::string text = "registers " + std::to_string(resources.registers);
    if (resources.spill_bytes >= 0) text += ", spilled bytes " + std::to_string(resources.spill_bytes);
    text += ", blocks per unit " + std::to_string(model.occupancy.blocks) + " limited by " + name(model.occupancy.limit);
    return text + ", main loop " + loop;
}

}  // namespace

Status predict_candidate(const WorkerRequest& request, WorkerReply& reply) {
    const Arch* const arch = find_arch(request.device);
    if (arch == nullptr) return invalid_argument("no architecture '" + request.device + "'");
    TILEWRIGHT_ASSIGN_OR_RETURN(Backend* const backend, find_backend(arch->backend));
    const KernelSpec spec = dense_spec(request.problem, request.configs[0]);
    TILEWRIGHT_ASSIGN_OR_RETURN(const KernelSource source, generate(spec, *arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(const CodeObject object, compile_cached(*backend, source, *arch, CodeCache::of_user()));
    TILEWRIGHT_ASSIGN_OR_RETURN(const Resources resources, backend->inspect(object));
    TILEWRIGHT_ASSIGN_OR_RETURN(const Prediction model, predict(spec, *arch, &resources));
    Timing timing;
    timing.median_us = model.time_us;
    std::string how = "by the model";
    if (arch->backend == "amd" && model.tiles > 0) {
        if (const auto loop = amd::main_loop(object, *arch); loop.ok()) {
            timing.median_us = time_with_loop(model, *loop, source.threads, *arch);
            how = std::to_string(std::lround(loop->cycles)) + " cycles of a wave, " + std::to_string(std::lround(loop->busy_cycles)) + " of the SIMD, by " +
                  loop->method;
        } else {
            how += ": " + loop.status().message();
        }
    }
    // Scratch goes through the caches: each spilled register is written and read again in some part of the work.
    if (resources.spill_bytes > 0) timing.median_us *= 1 + static_cast<double>(resources.spill_bytes) / 4 / std::max(1, resources.registers);
    timing.p20_us = timing.p80_us = timing.median_us;
    reply.timings = {timing};
    reply.note = describe(resources, model, how);
    return {};
}

Result<TuneReport> predict_space(const Problem& problem, const Arch& arch, Store& store, const TuneOptions& given) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    if (problem.operation != Operation::forward) return Status(StatusCode::unsupported, "only forward problems are predicted: " + to_text(problem));
    if (given.worker_command.empty()) return invalid_argument("no worker command was given");
    TILEWRIGHT_ASSIGN_OR_RETURN(Backend* const backend, find_backend(arch.backend));
    TILEWRIGHT_ASSIGN_OR_RETURN(const Toolchain toolchain, toolchain_of(*backend));
    TILEWRIGHT_ASSIGN_OR_RETURN(const TuningSpace space, tuning_space(problem, arch, {}));
    TILEWRIGHT_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::create());
    TuneReport report;
    report.problem = problem;
    report.device = DeviceInfo{arch.name, "no device: predicted", arch, ""};
    report.strategy = "model";
    report.legal = static_cast<int64_t>(space.configs.size());
    const TuneOptions options = with_counted_budget(given, report.legal);
    report.rejected = space.rejected;
    report.rejected_examples = space.rejected_examples;
    report.roofline_us = roofline_us(problem, arch);
    TILEWRIGHT_ASSIGN_OR_RETURN(const MeasurementKey key, store.put_key(problem, device_class({"", "", arch, ""}), toolchain));

    const auto add = [&](size_t place, const Measurement& measurement, bool resumed) {
        report.trials.push_back({space.configs[place], measurement, space.search.prior()[place], resumed});
        const bool known = measurement.outcome == Outcome::predicted;
        if (known && (!report.best || measurement.median_us < report.trials[*report.best].measurement.median_us)) report.best = report.trials.size() - 1;
    };
    std::vector<bool> done(space.configs.size(), false);
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<Measurement> stored, store.measurements(key));
    for (const Measurement& measurement : stored) {
        const auto place = static_cast<size_t>(std::ranges::find(space.configs, measurement.config) - space.configs.begin());
        if (place == space.configs.size() || done[place] || (options.retry_failed && measurement.outcome != Outcome::predicted)) continue;
        done[place] = true;
        ++report.resumed;
        add(place, measurement, true);
    }
    std::vector<size_t> order(space.configs.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::erase_if(order, [&](size_t place) { return done[place]; });
    std::ranges::stable_sort(order, {}, [&](size_t place) { return space.search.prior()[place]; });

    const int jobs = compile_jobs(options);
    CompilePool pool(options.worker_command, scratch.file("compiler_"), jobs, options.compile_timeout_seconds);
    const auto over = [&](size_t in_flight) {
        if (options.stop != nullptr && options.stop->load()) return true;
        if (options.budget_seconds > 0 && seconds() >= options.budget_seconds) return true;
        return options.budget_evaluations > 0 && static_cast<int64_t>(report.trials.size() + in_flight) >= options.budget_evaluations;
    };
    std::deque<std::pair<size_t, int64_t>> flying;  // place and ticket
    for (size_t next = 0; next < order.size() || !flying.empty();) {
        while (next < order.size() && flying.size() < static_cast<size_t>(2 * jobs) && !over(flying.size())) {
            WorkerRequest request;
            request.action = WorkerAction::predict;
            request.device = arch.name;
            request.problem = problem;
            request.configs = {space.configs[order[next]]};
            flying.emplace_back(order[next], pool.submit(std::move(request)));
            ++next;
        }
        if (flying.empty()) break;
        const auto [place, ticket] = flying.front();
        flying.pop_front();
        const WorkerReply reply = pool.wait(ticket);
        // Nothing runs here. The compiler is not there or does not know the architecture: no candidate's fault, and nothing to store.
        if (reply.outcome == Outcome::runtime) return Status(StatusCode::unavailable, reply.message);
        Measurement measurement;
        measurement.config = space.configs[place];
        measurement.host = host_name();
        measurement.outcome = reply.outcome == Outcome::correct ? Outcome::predicted : reply.outcome;
        measurement.note = reply.outcome == Outcome::correct ? reply.note : reply.message.substr(0, 2000);
        if (measurement.outcome == Outcome::predicted) {
            if (reply.timings.size() != 1) return Status(StatusCode::internal, "a worker reported success without a time");
            set_timing(measurement, reply.timings[0]);
        }
        TILEWRIGHT_ASSIGN_OR_RETURN(measurement.id, store.add(key, measurement));
        add(place, measurement, false);
        if (options.progress) options.progress(progress_of(report, options, seconds(), false));
    }
    const bool stopped = options.stop != nullptr && options.stop->load();
    report.stopped = stopped ? "interrupted" : report.trials.size() == space.configs.size() ? "exhausted" : "budget";
    if (report.best) report.ties = {*report.best};
    report.notes.push_back("times are predicted: nothing ran");
    summarize_trials(report);
    report.seconds = seconds();
    return report;
}

}  // namespace tilewright
