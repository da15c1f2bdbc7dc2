// What tune shows while it runs and prints at the end.
#pragma once
#include <string>
#include <vector>

#include "tuner/work_list.h"

namespace tilewright::cli {

// One line on stderr, rewritten on a terminal, otherwise a new one every few seconds. Not thread-safe.
class ProgressLine {
public:
    explicit ProgressLine(bool quiet);
    ~ProgressLine();
    void show(const WorkProgress& work, const TuneProgress& progress);

private:
    bool quiet_, terminal_;
    size_t number_ = 0;  // of the problem shown; 0: nothing was
    double shown_at_ = 0;
};

// To stdout. Of a list a table with one row a problem, or as JSON an array; otherwise, for the one problem, whose status is ok, all that was found.
void print_results(const std::vector<WorkResult>& results, bool is_list, bool json);

}  // namespace tilewright::cli
