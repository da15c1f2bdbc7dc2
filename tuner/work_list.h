// Tuning several problems on one or more devices.
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

// Devices of one class, by one toolchain: what one of them finds is true for all, so they share the problems.
struct WorkGroup {
    std::vector<TuneDevice> devices;
    std::vector<Problem> problems;
};
// Groups in the order of their first devices, each with all of `problems`.
std::vector<WorkGroup> group_devices(const std::vector<TuneDevice>& devices, const std::vector<Problem>& problems);

// What lookups asked of the database for this class of devices and did not find, the most asked first. Texts that this build does not know are left out.
Result<std::vector<Problem>> missed_problems(Store& store, const TuneDevice& device);

struct WorkResult {
    Problem problem;
    Status status;            // why there is no report; a list that was interrupted, or whose devices failed, has some "not tried"
    TuneReport report;        // if status is ok
    std::string device = {};  // that tuned it; of those not tried: the first of the group
};

struct WorkProgress {
    std::string device;
    size_t number = 0, count = 0;  // the number-th of the group's count problems, in the order in which they are begun; from 1
    const Problem* problem = nullptr;
    double seconds_left = 0;  // for the group's whole list, by the budget or by what the problems took so far
};
using WorkProgressSink = std::function<void(const WorkProgress&, const TuneProgress&)>;

// Tunes each group's problems with the whole budget of `options` each, all devices at the same time, one worker each, with one pool of compilers. A device that is
// done takes the group's next problem; those of which the database knows least come first, so that an interrupted list goes on with what it did not reach.
// Results are by group, then in the order of its problems. A problem that cannot be tuned stops no other; a device that fails leaves the rest to the
// others of its group; a database that fails ends all. `progress` (may be empty) is called in place of options.progress, by one thread at a time.
// `database` is a file that Store opens. Errors: of what is common to all: an unknown strategy; a database that cannot be read.
Result<std::vector<WorkResult>> tune_all(const std::vector<WorkGroup>& groups, const std::string& database, const TuneOptions& options,
                                         const WorkProgressSink& progress);

}  // namespace tilewright
