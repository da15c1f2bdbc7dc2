// Tuning several problems on one device, one after the other.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/tune.h"

namespace tilewright {

// One problem text a line; what follows a # and empty lines are skipped; a problem that stood before is left out. invalid_argument names `source`
// and the line's number, also where there is no problem at all.
Result<std::vector<Problem>> parse_problem_list(std::string_view text, const std::string& source);

struct WorkResult {
    Problem problem;
    Status status;      // why there is no report; a list that was interrupted, or whose device failed, has some "not tried"
    TuneReport report;  // if status is ok
};

struct WorkProgress {
    size_t number = 0, count = 0;  // the number-th of count problems, in the order in which they are tuned; from 1
    const Problem* problem = nullptr;
    double seconds_left = 0;  // for the whole list, by the budget or by what the problems took so far
};

// Tunes each with the whole budget of `options`, those of which the database knows least first, so that an interrupted list goes on with what
// it did not reach. Results are in the order of `problems`. A problem that cannot be tuned stops no other; a device or database that fails
// does. `progress` (may be empty) is called in place of options.progress.
// Errors: of what is common to all: no such device, strategy or toolchain; a database that cannot be read.
Result<std::vector<WorkResult>> tune_all(const std::vector<Problem>& problems, const std::string& device, Store& store, const TuneOptions& options,
                                         const std::function<void(const WorkProgress&, const TuneProgress&)>& progress);

}  // namespace tilewright
