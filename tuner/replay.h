// Recorded search spaces (T4 results files, tuning databases), replayed without a device, and what a strategy reaches on them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/status.h"
#include "tuner/search_space.h"

namespace tilewright {

struct RecordedSpace {
    std::string name;
    SearchSpace space;
    std::vector<double> costs;          // per configuration, in the file's unit; failed_cost if it failed
    std::vector<std::string> outcomes;  // "correct", "compile", "runtime", ...; "missing": legal, but not recorded
    uint32_t missing = 0;
};

// Reads a T4 results file; gzip is recognised by its content. A parameter whose values are all numbers is ordered. Of several results
// of one configuration the last counts. Where every result has a measurement named "predicted" these are the space's prior. With the T1 file of its space that says which values and configurations there are: those without a result are
// missing and count as failed, a result outside the space is an error, and parameters that T1 does not name must have one value. io: the file cannot
// be read; invalid_argument: not T4 or T1, and where.
Result<RecordedSpace> read_t4(const std::string& path, const std::string& t1_path = "");
// Writes what read_t4() reads, with predictions and the configurations to try first, as "predicted" among the measurements and "first" in the metadata; compressed
// if the name ends in .gz. io: it cannot be written.
Status write_t4(const RecordedSpace& recorded, const std::string& path);
// The space of a T1 file, plain or gzip: its parameters' values, ascending where they are numbers, and the configurations that its conditions leave.
// Conditions and values are Python expressions (tuner/expression.h). Errors as above.
Result<SearchSpace> read_t1(const std::string& path);
// The measurements that a tuning database holds of `problem` (its canonical text; empty: of the only one), by its newest toolchain. As in
// a real run, the model's predictions and its choice come with the space where the architecture is known. Errors are the store's;
// not_found: no such measurement; invalid_argument: of several problems or devices.
Result<RecordedSpace> read_database_space(const std::string& path, const std::string& problem);

struct SimulationOptions {
    std::string strategy = "portfolio";
    int evaluations = 400;
    int repeats = 100;
    uint64_t seed = 1;
    int threads = 0;  // 0: one per core
};

struct Simulation {
    struct Row {
        int evaluations;
        double median, p10;  // over the repeats, of optimum / best found; 0 while nothing worked
    };
    std::vector<Row> rows;  // at 20, 50, 100, 200, 400 as far as they fit the evaluations, and at the last
    // The comparison method's score: the gap between random search's expected best and the optimum that is closed, mean over the
    // evaluations until random search has closed 95 % of the way from the median; 1 is the optimum at once, 0 as good as random.
    double score;
    struct Reached {
        double fraction;
        double evaluations;  // median over the repeats; infinite where more than half never reached it
    };
    std::vector<Reached> reached;  // 0.90, 0.95, 0.99 of the optimum
    double seconds;
};
// Runs `repeats` searches with seeds seed, seed + 1, ...; the result does not depend on the threads. invalid_argument: an unknown strategy, a
// count below 1, or a recording with no success.
Result<Simulation> simulate(const RecordedSpace& recorded, const SimulationOptions& options);

}  // namespace tilewright
