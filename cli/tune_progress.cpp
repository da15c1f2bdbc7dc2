// The progress line of tune.
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "cli/tune_output.h"

namespace tilewright::cli {
namespace {

std::string duration_text(double seconds) {
    char text[32];
    if (!std::isfinite(seconds)) return "?";
    if (seconds < 90)
        std::snprintf(text, sizeof text, "%.0f s", seconds);
    else if (seconds < 5400)
        std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
    else
        std::snprintf(text, sizeof text, "%.1f h", seconds / 3600);
    return text;
}

}  // namespace

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(isatty(2) != 0) {}

ProgressLine::~ProgressLine() {
    if (terminal_ && number_ > 0) std::fprintf(stderr, "\n");
}

void ProgressLine::show(const WorkProgress& work, const TuneProgress& progress) {
    const bool new_problem = number_ != work.number;
    if (quiet_ || (!terminal_ && !new_problem && progress.seconds - shown_at_ < 5 && !progress.racing)) return;
    shown_at_ = progress.seconds;
    number_ = work.number;
    const bool list = work.count > 1;
    if (list && new_problem && !terminal_) std::fprintf(stderr, "problem %zu of %zu: %s\n", work.number, work.count, to_text(*work.problem).c_str());
    std::string text = list ? "problem " + std::to_string(work.number) + " of " + std::to_string(work.count) + ": " : "";
    if (progress.racing) text += "racing the best, ";
    text += std::to_string(progress.done) + (progress.total > 0 ? "/" + std::to_string(progress.total) : "") + " tried";
    char best[64] = ", none correct yet";
    if (progress.best != nullptr) std::snprintf(best, sizeof best, ", best %.1f us", progress.best->measurement.median_us);
    text += best;
    if (!list && progress.last != nullptr && progress.last->measurement.outcome != Outcome::correct)
        text += std::string(", last: ") + name(progress.last->measurement.outcome);
    text += ", " + duration_text(progress.seconds_left) + " left";
    if (list) text += " (all: " + duration_text(work.seconds_left) + ")";
    std::fprintf(stderr, terminal_ ? "\r%-78s" : "%s\n", text.c_str());
    std::fflush(stderr);
}

}  // namespace tilewright::cli
