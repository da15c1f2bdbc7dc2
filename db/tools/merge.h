// Combining, thinning out and comparing databases.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "db/store.h"

namespace tilewright {

struct MergeReport {
    int64_t rows = 0;                    // in the result
    int64_t repeated = 0;                // dropped for another row of the same candidate
    int64_t unreadable = 0;              // of problems or configs that this build does not know; left out
    std::vector<std::string> conflicts;  // candidates that are correct in one input and wrong in another: kept as wrong
};
// Writes the union of `inputs` to the new file `out`: one row for each candidate (problem, device, toolchain, config). Of several
// the result keeps: one that gave wrong results, if any did; else a timed one before one that was not; else one from a race; else the
// one with more samples; else the lower median if it is lower by more than the two spreads; else the later one. Toolchains stay apart.
// invalid_argument if `out` exists; on any error there is no `out`.
Result<MergeReport> merge_databases(const std::vector<std::string>& inputs, const std::string& out);

struct PruneRules {
    bool old_toolchains = true;  // measurements by toolchains that a newer one has replaced for the same problem and device
    bool failures = false;       // whatever did not end up correct
    int keep = 0;                // > 0: only so many of the fastest candidates of each problem, device and toolchain
    int64_t before = 0;          // > 0: measured earlier than this, unless it is the winner
};
// Returns how many measurements were removed. Unused problems, devices, toolchains and configs go too, and the file shrinks.
Result<int64_t> prune(Store& store, const PruneRules& rules);

// A winner of one database beside the other's. Absent: it has none for that problem and device.
struct WinnerPair {
    std::string problem, device;
    std::optional<MeasurementRow> a, b;
};
// Where the winners' configs differ, or only one side has any, ordered by problem.
Result<std::vector<WinnerPair>> diff_winners(Store& a, Store& b);

}  // namespace tilewright
