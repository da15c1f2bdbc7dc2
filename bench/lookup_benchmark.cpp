// How long lookups, opening a database and inserting take; the figures of docs/database.md.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/scratch_directory.h"
#include "db/store.h"

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;

void require(const Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::exit(1);
}

const DeviceClass device{"nvidia", "sm_90a", "hopper", "NVIDIA H200", 132};

Problem problem_of(int i) {
    Problem problem;
    problem.batch = 1 + i % 4;
    problem.heads_q = 32;
    problem.heads_kv = 8;
    problem.seq_q = problem.seq_kv = 128 + 64 * (i / 4);
    problem.head_dim = problem.head_dim_v = 128;
    problem.window_right = 0;
    return problem;
}

// `problems` problems with `configs` measured configs each, in a file of its own, made once.
const std::string& file_of(int problems, int configs) {
    struct File {
        int problems, configs;
        ScratchDirectory folder;
        std::string path;
    };
    static std::vector<std::unique_ptr<File>> files;
    for (const auto& file : files) {
        if (file->problems == problems && file->configs == configs) return file->path;
    }
    Result<ScratchDirectory> folder = ScratchDirectory::create();
    require(folder.status());
    files.push_back(std::make_unique<File>(File{problems, configs, *std::move(folder), ""}));
    File& file = *files.back();
    file.path = file.folder.file("bench.db");
    Result<Store> store = Store::open(file.path, StoreMode::create);
    require(store.status());
    std::vector<MeasurementRow> rows;
    for (int c = 0; c < configs; ++c) {
        for (int p = 0; p < problems; ++p) {
            MeasurementRow row{problem_of(p), device, {"nvrtc 12.8", "-O3", "0123456789abcdef"}, {}, true};
            row.measurement.config.block_q = 16 + c % 64;
            row.measurement.config.block_kv = 16 + c / 64;
            row.measurement.median_us = row.measurement.p20_us = row.measurement.p80_us = 100 + (c * 7919 + p) % 997;
            row.measurement.samples = 20;
            row.measurement.measured_at = 1000;
            rows.push_back(row);
        }
    }
    require(store->add_all(rows));
    require(store->compact());
    return file.path;
}

DatabaseOptions options_of(const std::string& path) {
    DatabaseOptions options;
    options.user_path = path;
    options.use_system = options.use_defaults = options.log_misses = false;
    return options;
}

// Warm lookups among 200 tuned problems. Argument 0: tuned ones; 1: their neighbours. p50 and p99 are of single calls and include
// reading the clock, whose own cost is the counter clock_ns.
void lookup(benchmark::State& state) {
    static TuningDatabase database = TuningDatabase::open(options_of(file_of(200, 500)));
    const int on = database.device(device);
    std::vector<Problem> asked;
    for (int i = 0; i < 200; ++i) {
        asked.push_back(problem_of(i));
        if (state.range(0) == 1) asked.back().seq_q = asked.back().seq_kv += 10;
        const Provenance expected = state.range(0) == 1 ? Provenance::nearest : Provenance::exact;
        if (database.lookup(asked.back(), on).provenance != expected) state.SkipWithError("not the expected provenance");
    }
    size_t next = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(database.lookup(asked[next], on));
        if (++next == asked.size()) next = 0;
    }
    std::vector<int64_t> single(20000), empty(20000);
    for (size_t i = 0; i < single.size(); ++i) {
        const auto begin = Clock::now();
        benchmark::DoNotOptimize(database.lookup(asked[i % asked.size()], on));
        const auto end = Clock::now();
        single[i] = (end - begin).count();
        const auto again = Clock::now();
        empty[i] = (Clock::now() - again).count();
    }
    std::sort(single.begin(), single.end());
    std::sort(empty.begin(), empty.end());
    const auto average = benchmark::Counter::kAvgThreads;
    state.counters["p50_ns"] = {static_cast<double>(single[single.size() / 2]), average};
    state.counters["p99_ns"] = {static_cast<double>(single[single.size() * 99 / 100]), average};
    state.counters["clock_ns"] = {static_cast<double>(empty[empty.size() / 2]), average};
}
BENCHMARK(lookup)->ArgName("nearest")->Arg(0)->Arg(1)->Threads(1)->Threads(2)->Threads(8);

// The first lookup of a problem: the search itself, without hooks.
void first_lookup(benchmark::State& state) {
    TuningDatabase database = TuningDatabase::open(options_of(file_of(200, 500)));
    const int on = database.device(device);
    Problem asked = problem_of(0);
    for (auto _ : state) {
        asked.seq_q = asked.seq_kv = asked.seq_kv % 20000 + 1;
        asked.heads_q += asked.seq_kv == 1 ? 8 : 0;
        benchmark::DoNotOptimize(database.lookup(asked, on));
    }
}
BENCHMARK(first_lookup);

void open_database(benchmark::State& state) {
    const std::string& path = file_of(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
    for (auto _ : state) {
        const TuningDatabase database = TuningDatabase::open(options_of(path));
        if (database.layers()[0].rows != state.range(0)) state.SkipWithError("not all rows were found");
    }
}
BENCHMARK(open_database)->ArgNames({"problems", "configs"})->Args({20, 50})->Args({200, 500})->Args({100000, 1})->Unit(benchmark::kMillisecond);

// One measurement, durable: a transaction with its sync.
void insert(benchmark::State& state) {
    Result<ScratchDirectory> folder = ScratchDirectory::create();
    require(folder.status());
    Result<Store> store = Store::open(folder->file("t.db"), StoreMode::create);
    require(store.status());
    const Result<MeasurementKey> key = store->put_key(problem_of(0), device, {"nvrtc 12.8", "-O3", "0123456789abcdef"});
    require(key.status());
    Measurement measurement;
    measurement.median_us = measurement.p20_us = measurement.p80_us = 100;
    for (auto _ : state) require(store->add(*key, measurement).status());
}
BENCHMARK(insert)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tilewright

BENCHMARK_MAIN();
