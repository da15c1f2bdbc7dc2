// The end of a tuning run: the best few are measured in turns.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tuner/candidate_runner.h"
#include "tuner/compile_pool.h"
#include "tuner/strategy.h"
#include "tuner/tune.h"

namespace tilewright {

// What it needs of the run. All must outlive the call.
struct RaceRun {
    const TuneOptions& options;
    Store& store;
    const MeasurementKey& key;
    const TuningSpace& space;
    const SearchHistory& history;
    const std::vector<uint32_t>& indices;  // of the report's trials in the space
    CompilePool& pool;
    CandidateRunner& runner;
    WorkerRequest request;                            // to be completed with configs and files
    std::function<std::string(uint32_t)> file_of;     // of a configuration's object
    double seconds;                                   // for the race
    TuneReport& report;                               // which has a best
};

// Measures the finalists in turns until they are told apart or time is up, settles ties, stores places. The times replace the report's. Without anything
// new since an earlier run the winner is what lookups answer already. Errors: of the store alone; what else goes wrong becomes a note.
Status race_finalists(const RaceRun& run);

}  // namespace tilewright
