// What tune shows while it runs and prints at the end.
#pragma once
#include <string>
#include <vector>

#include "tuner/work_list.h"

namespace tilewright::cli {

// On stderr a line for each device at work: rewritten on a terminal, otherwise a new one every few seconds. One thread at a time.
class ProgressLine {
public:
    explicit ProgressLine(bool quiet);
    ~ProgressLine();
    void show(const WorkProgress& work, const TuneProgress& progress);

private:
    struct Line {
        std::string device, text;
        size_t number = 0;  // of the problem shown; 0: nothing was
        double shown_at = 0;
    };
    void redraw() const;

    bool quiet_, terminal_;
    std::vector<Line> lines_;  // in the order in which devices began
    size_t drawn_ = 0;         // lines on the terminal
};

// To stdout. Of a list a table with one row a problem, or as JSON an array; otherwise, for the one problem, whose status is ok, all that was found.
void print_results(const std::vector<WorkResult>& results, bool is_list, bool json);

}  // namespace tilewright::cli
