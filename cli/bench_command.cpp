// `tilewright bench`: tiled attention beside the standard baseline and, on the CPU, OpenBLAS's matrix product or a plain read, in one run, in turns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/cpu/cpu_device.h"
#include "cli/cli.h"
#include "cli/read_peer.h"
#include "cli/sgemm_peer.h"
#include "model/space.h"
#include "model/traffic.h"
#include "runtime/device_class.h"
#include "runtime/kernels.h"
#include "tilewright/attention.h"
#include "verify/check_backward.h"
#include "verify/device_workload.h"

namespace tilewright::cli {
namespace {

// What the CPU backend's targets are stated for (docs/performance.md).
constexpr const char* default_problems[] = {"forward:b1,hq8,hkv8,sq2048,skv2048,d64,fp32", "forward:b1,hq8,hkv8,sq2048,skv2048,d128,fp32",
                                            "forward:b1,hq8,hkv8,sq2048,skv2048,d64,bf16", "forward:b1,hq8,hkv2,sq1024,skv1024,d64,fp32,causal",
                                            "forward:b1,hq4,hkv4,sq4096,skv4096,d64,fp32"};

struct Samples {
    std::vector<double> values;
    double quantile(double q) const {
        std::vector<double> sorted = values;
        std::sort(sorted.begin(), sorted.end());
        return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
    }
    double median() const { return quantile(0.5); }
    double spread() const { return (quantile(0.8) - quantile(0.2)) / median(); }
};

struct Row {
    Problem problem;
    LookupResult found;
    Samples tiled, standard;  // us; standard stays empty where the score matrix would be too large
    Samples peer;             // of the CPU: sgemm's GFLOP/s, or for decoding GB/s of a plain read; may stay empty
    bool reads() const { return problem.operation == Operation::decode; }
    double of_peer() const { return (reads() ? gbps(tiled) : gflops(tiled)) / peer.median(); }
    double gflops(const Samples& times) const { return useful_flops(problem) / times.median() * 1e-3; }
    double gbps(const Samples& times) const { return compulsory_bytes(problem) / times.median() * 1e-3; }  // of what must be moved at least
};

constexpr int64_t largest_matrix_bytes = int64_t{4} << 30;

class Bench {
public:
    static Result<Bench> open(const std::string& id, int threads, const std::string& database, int repeats) {
        TILEWRIGHT_ASSIGN_OR_RETURN(Backend * backend, find_backend(id.substr(0, id.find(':'))));
        bool is_cpu = std::string_view(backend->name()) == "cpu";
        TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, is_cpu ? open_cpu(threads) : open_device(id));
        DatabaseOptions options;
        options.user_path = database, options.log_misses = false;
        options.hooks = lookup_hooks(device->info().arch);
        Bench bench(*backend, std::move(device), TuningDatabase::open(std::move(options)), repeats);
        if (is_cpu)
            if (Result<SgemmPeer> peer = SgemmPeer::open(bench.device().info().arch.units); peer.ok()) bench.peer_ = *std::move(peer);
        return bench;
    }
    Device& device() { return *device_; }
    std::optional<SgemmPeer>& peer() { return peer_; }

    Result<Row> run(const Problem& problem) {
        Row row{problem, database_.lookup(problem, database_.device(device_class(device_->info()))), {}, {}, {}};
        CheckOptions options;
        options.max_rows = 64;
        const Arch& arch = device_->info().arch;
        auto forward = [&](const Problem& of, const CallTraits& traits) { return kernels_->get(of, default_config(of, arch), traits); };
        TILEWRIGHT_ASSIGN_OR_RETURN(PreparedCheck prepared, prepare_check(*device_, forward, problem, options));
        CallTraits traits = traits_of(prepared.workload);
        TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload data, DeviceWorkload::upload(*device_, prepared.workload));
        TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation tiled, verified(row.found.config, traits, data, prepared));
        std::vector<Timed> all;
        TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload::Bound bound, data.bind(tiled.plan));
        all.push_back({std::move(tiled), std::move(bound), &row.tiled});
        if (problem.operation == Operation::forward && score_matrix_bytes(problem) <= double(largest_matrix_bytes)) {
            traits.materialized = true;
            const Config config = arch.family == Family::sm90 ? default_config(problem, baseline_arch(arch)) : row.found.config;
            if (Result<ReadyOperation> standard = kernels_->get(problem, config, traits); standard.ok()) {
                TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload::Bound with_scores, data.bind(standard->plan));
                all.push_back({*std::move(standard), std::move(with_scores), &row.standard});
            }
        }
        TILEWRIGHT_RETURN_IF_ERROR(time_in_turns(all, peer_of(problem), row.peer));
        return row;
    }

private:
    Bench(Backend& backend, std::unique_ptr<Device> device, TuningDatabase database, int repeats)
        : device_(std::move(device)), database_(std::move(database)), kernels_(std::make_unique<Kernels>(backend, *device_, true)), repeats_(repeats) {}

    struct Timed {
        ReadyOperation operation;
        DeviceWorkload::Bound bound;
        Samples* times;
    };

    // Nothing is timed before it is verified.
    Result<ReadyOperation> verified(const Config& config, const CallTraits& traits, DeviceWorkload& data, PreparedCheck& prepared) {
        TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation ready, kernels_->get(prepared.workload.problem, config, traits));
        TILEWRIGHT_ASSIGN_OR_RETURN(CheckReport report, check(*device_, ready, data, prepared));
        if (!report.passed) return Status(StatusCode::internal, "wrong result of " + to_json(config) + ": " + report.failure);
        return ready;
    }

    std::function<double()> peer_of(const Problem& problem) {
        const DeviceInfo& info = device_->info();
        if (info.arch.family != Family::cpu) return {};
        if (problem.operation == Operation::decode) return [read = ReadPeer(info.arch.last_level_cache_bytes, info.arch.units)] { return read.run(); };
        if (!peer_) return {};
        return [this] { return peer_->run(); };
    }

    // One of each after the other, so that a drifting clock meets all alike.
    Status time_in_turns(const std::vector<Timed>& all, const std::function<double()>& peer, Samples& peers) {
        auto time = [&](const Timed& timed, Samples& times) -> Status {
            TILEWRIGHT_ASSIGN_OR_RETURN(std::vector<double> us, device_->time_us(1, {}, [&] { return launch(*device_, timed.operation.kernels, timed.bound.parameters, nullptr); }));
            times.values.push_back(us.at(0));
            return {};
        };
        Samples warm_up;
        for (int i = 0; i < 2; ++i) TILEWRIGHT_RETURN_IF_ERROR(time(all[0], warm_up));
        if (peer) peer();
        for (int i = 0; i < repeats_; ++i) {
            for (const Timed& timed : all) TILEWRIGHT_RETURN_IF_ERROR(time(timed, *timed.times));
            if (peer) peers.values.push_back(peer());
        }
        return {};
    }

    std::unique_ptr<Device> device_;
    TuningDatabase database_;
    std::unique_ptr<Kernels> kernels_;  // destroyed before the device
    std::optional<SgemmPeer> peer_;
    int repeats_;
};

nlohmann::json to_json_row(const Row& row) {
    nlohmann::json json{{"problem", to_text(row.problem)},     {"config", nlohmann::json::parse(to_json(row.found.config))},
                        {"found", name(row.found.provenance)}, {"median_us", row.tiled.median()},
                        {"spread", row.tiled.spread()},        {"gflops", row.gflops(row.tiled)},
                        {"gbps", row.gbps(row.tiled)}};
    if (!row.standard.values.empty())
        json["standard_median_us"] = row.standard.median(), json["standard_spread"] = row.standard.spread(),
        json["speedup"] = row.standard.median() / row.tiled.median();
    if (!row.peer.values.empty()) json[row.reads() ? "read_gbps" : "sgemm_gflops"] = row.peer.median(), json[row.reads() ? "of_read" : "of_sgemm"] = row.of_peer();
    return json;
}

void print_row(const Row& row) {
    std::printf("%-58s %-9s %9.3f ms +-%3.0f%% %9.1f GFLOP/s", to_text(row.problem).c_str(), name(row.found.provenance), row.tiled.median() * 1e-3,
                50 * row.tiled.spread(), row.gflops(row.tiled));
    if (row.reads()) std::printf("  %7.1f GB/s", row.gbps(row.tiled));
    if (!row.standard.values.empty()) std::printf("  %5.2fx standard", row.standard.median() / row.tiled.median());
    if (!row.peer.values.empty()) std::printf("  %3.0f%% of %s (%.1f)", 100 * row.of_peer(), row.reads() ? "a plain read" : "sgemm", row.peer.median());
    std::printf("\n");
    std::fflush(stdout);
}

// Host time of a whole cached call, lookup and launch, where there is next to nothing to compute.
Result<double> call_overhead_us(const std::string& device, int threads, const std::string& database) {
    AttentionOptions options;
    options.device = device, options.threads = threads;
    options.database.user_path = database, options.database.log_misses = false;
    TILEWRIGHT_ASSIGN_OR_RETURN(Attention attention, Attention::open(options));
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, parse_problem("forward:sq1,skv1,d16,fp32"));
    TILEWRIGHT_ASSIGN_OR_RETURN(void* memory, attention.allocate(1024));
    ForwardTensors tensors;
    tensors.query = tensors.key = tensors.value = dense(static_cast<const void*>(memory), 1, 1, 16);
    tensors.out = dense(static_cast<void*>(static_cast<char*>(memory) + 512), 1, 1, 16);
    Samples times;
    Status status;
    for (int i = 0; i < 2000 && status.ok(); ++i) {
        auto start = std::chrono::steady_clock::now();
        status = attention.forward(problem, tensors);
        times.values.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    if (status.ok()) status = attention.synchronize();
    (void)attention.free(memory).ok();
    if (!status.ok()) return status;
    return times.median();
}

}  // namespace

int bench_command(const Arguments& arguments) {
    std::string device = "cpu:0", database;
    int repeats = 9, threads = 0;
    ProblemOptions problem_options;
    CommandLine line("bench", "times tiled attention beside the standard baseline and the machine's matrix product");
    problem_options.add_to(line);
    line.option("device", &device, "ID", "where to run").option("threads", &threads, "N", "CPU: threads that compute; 0: all processors");
    line.option("db", &database, "FILE", "tuning database to look configs up in").option("repeats", &repeats, "N", "timed runs of each");
    line.example("tilewright bench").example("tilewright bench --problem forward:hq8,sq4096,d64,bf16,causal --db t.db");
    if (std::optional<int> exit = line.parse(arguments)) return *exit;
    if (repeats < 1) return fail("bench", "repeats is " + std::to_string(repeats) + "; it must be at least 1");
    std::vector<Problem> problems;
    if (problem_options.given()) {
        Result<Problem> problem = problem_options.problem();
        if (!problem.ok()) return fail("bench", problem.status());
        problems.push_back(*problem);
    } else {
        for (const char* text : default_problems) problems.push_back(*parse_problem(text));
    }
    Result<Bench> bench = Bench::open(device, threads, database, repeats);
    if (!bench.ok()) return fail("bench", bench.status());
    Result<double> overhead = call_overhead_us(device, threads, database);
    if (!overhead.ok()) return fail("bench", overhead.status());
    nlohmann::json rows = nlohmann::json::array();
    if (!line.json())
        std::printf("%s, %d threads or units; a cached call costs %.1f us; medians of %d runs in turns%s%s\n", bench->device().info().name.c_str(),
                    bench->device().info().arch.units, *overhead, repeats, bench->peer() ? "; sgemm: OpenBLAS for " : "",
                    bench->peer() ? bench->peer()->core().c_str() : "");
    for (const Problem& problem : problems) {
        Result<Row> row = bench->run(problem);
        if (!row.ok()) return fail("bench", row.status());
        if (line.json())
            rows.push_back(to_json_row(*row));
        else
            print_row(*row);
    }
    if (line.json())
        std::printf("%s\n", nlohmann::json{{"device", bench->device().info().name},
                                           {"units", bench->device().info().arch.units},
                                           {"call_us", *overhead},
                                           {"repeats", repeats},
                                           {"rows", rows}}
                                .dump()
                                .c_str());
    return exit_success;
}

}  // namespace tilewright::cli
