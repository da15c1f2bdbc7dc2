// Tuning one problem on one device: propose, compile, check, measure, store; and the report of what was found.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "db/store.h"
#include "tuner/tune_device.h"
#include "tuner/tuning_space.h"

namespace tilewright {

class CompilePool;

enum class CacheState { automatic, cold, warm };  // of the last-level cache before a launch; automatic: cold on GPUs, warm on CPUs

struct TuneTrial {
    Config config;
    Measurement measurement;
    double predicted_us = 0;
    bool resumed = false;  // from the database, not of this run
};

struct TuneProgress {
    int64_t done = 0, total = 0;  // evaluations; total 0: bounded by time alone
    double seconds = 0;           // since the start
    double seconds_left = 0;      // an estimate where the budget is evaluations; infinite while unknown
    const TuneTrial* last = nullptr;
    const TuneTrial* best = nullptr;
    bool racing = false;  // the finalists are being measured in turns
};

enum class Quantity { time, energy };

// What a winner must be. Candidates that are not are measured and stored all the same.
struct TuneObjective {
    Quantity least = Quantity::time;  // energy: of one launch, warm; the device's management library must give it
    double max_error = 0;             // of its result, relative, as measured against the reference; 0: what the check lets pass
};

struct TuneOptions {
    std::string strategy = "portfolio";
    uint64_t seed = 1;
    double budget_seconds = 0;       // 0: no limit
    int64_t budget_evaluations = 0;  // with those found in the database; 0: no limit
    double budget_fraction = 0;      // of the legal configs, as so many evaluations; 0: no limit
    int compile_jobs = 0;            // 0: one per core
    double compile_timeout_seconds = 150;
    double run_timeout_seconds = 60;  // to check and measure one candidate
    double measure_seconds = 0.5;     // for one candidate's samples; finalists get more
    int finalists = 8;
    TuneObjective objective;
    CacheState cache = CacheState::automatic;
    bool use_seeds = true;
    bool retry_failed = false;                          // try again what failed in an earlier run
    std::vector<std::string> worker_command;            // a program that serves as worker, e.g. {"/usr/bin/tilewright", "worker"}
    CompilePool* pool = nullptr;                        // compiles for several runs at the same time; none: the run has its own
    const std::atomic<bool>* stop = nullptr;            // once true, the current candidate is finished and the report made
    std::function<void(const TuneProgress&)> progress;  // after every candidate, from the calling thread
};

// The occupancy model beside the device's own answer, over the candidates that this run compiled and loaded. CPUs give no answer.
struct OccupancyAgreement {
    int64_t compared = 0, agreed = 0;
    std::string first_difference;  // a config, its kernel, and both answers
};

struct TuneReport {
    Problem problem;
    DeviceInfo device;
    std::string strategy;
    std::vector<TuneTrial> trials;                         // resumed ones first, then in the order of this run
    TuneObjective objective;
    std::optional<size_t> best;                            // index of the winner
    std::vector<size_t> ties;                              // winners within noise, the winner first
    std::vector<size_t> front;                             // correct ones that no other beats in time, error and (where known of both) energy, the fastest first
    std::optional<size_t> worst;                           // the slowest correct one
    double median_us = 0;                                  // of the correct ones
    std::map<std::string, int64_t> outcomes;               // trials by outcome
    std::map<std::string, int64_t> rejected;               // candidates never tried, by constraint
    std::map<std::string, std::string> rejected_examples;  // one reason by constraint
    int64_t legal = 0, resumed = 0, seeds = 0;
    double roofline_us = 0, seconds = 0;
    OccupancyAgreement occupancy;
    std::string stopped;             // "budget", "exhausted", "interrupted"
    std::string device_failure;      // why the device could not be used to the end; empty: it could
    std::vector<std::string> notes;  // worth knowing, one sentence each
};

// Every result is in `store` before the next candidate starts, so a killed run loses the current candidate alone and the next run goes on.
// Errors: of the device, the toolchain, the database; a candidate's failure is none. If the device stops answering, what was found is returned with
// device_failure set. Not to be called twice at the same time for one device. A problem that gets a winner is no
// longer among the store's misses.
Result<TuneReport> tune(const Problem& problem, const TuneDevice& device, Store& store, const TuneOptions& options);
Result<TuneReport> tune(const Problem& problem, const std::string& device, Store& store, const TuneOptions& options);

}  // namespace tilewright
