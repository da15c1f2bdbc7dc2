// Times rows of a database again on this device: do they still say what it does?
#pragma once
#include <string>
#include <vector>

#include "db/store.h"
#include "tuner/protocol.h"

namespace tilewright {

struct RemeasureOptions {
    int64_t sample = 10;      // rows, drawn at random
    uint32_t seed = 1;        // equal seeds draw equal rows of equal files
    bool winners = true;      // only they are drawn; false: every correct measurement
    double tolerance = 0.1;   // part by which medians may differ
    double seconds = 1;       // for timing each
    std::vector<std::string> worker_command;  // a program that serves as worker, e.g. {"/usr/bin/tilewright", "worker"}
    double run_timeout_seconds = 60;
};

struct Remeasured {
    MeasurementRow row;
    WorkerReply now;
    double ratio = 0;          // of the median now to the row's; 0: not timed
    std::string disagreement;  // what is wrong with the row, in a sentence; empty: it agrees
};
struct RemeasureReport {
    int64_t rows = 0;  // correct ones of this device class, from which the sample was drawn
    std::vector<Remeasured> sample;
};

// Medians disagree if they differ by more than the tolerance and by more than the spreads (p80 - p20) of both. A row also disagrees if
// its config no longer compiles, runs or gives the right result. Nothing is written. not_found: no such device, or no row of its class;
// unavailable: the device does not answer.
Result<RemeasureReport> remeasure(Store& store, const std::string& device, const RemeasureOptions& options);

// Why they disagree; empty if they agree.
std::string disagreement(const Measurement& before, const WorkerReply& now, double tolerance);

}  // namespace tilewright
