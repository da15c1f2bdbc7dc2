// The progress line of tune.
#include <unistd.h>

#include <algorithm>
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
    if (drawn_ > 0) std::fprintf(stderr, "\n");
}

void ProgressLine::show(const WorkProgress& work, const TuneProgress& progress) {
    auto found = std::ranges::find(lines_, work.device, &Line::device);
    if (found == lines_.end()) found = lines_.insert(lines_.end(), Line{work.device, {}, 0, 0});
    Line& line = *found;
    const bool new_problem = line.number != work.number;
    if (quiet_ || (!terminal_ && !new_problem && progress.seconds - line.shown_at < 5 && !progress.racing)) return;
    line.shown_at = progress.seconds;
    line.number = work.number;
    const bool list = work.count > 1, several = lines_.size() > 1;
    const std::string device = several || list ? work.device + ": " : "";
    if (list && new_problem && !terminal_) std::fprintf(stderr, "%sproblem %zu of %zu: %s\n", device.c_str(), work.number, work.count, to_text(*work.problem).c_str());
    std::string text = device;
    if (list) text += "problem " + std::to_string(work.number) + " of " + std::to_string(work.count) + ": ";
    if (progress.racing) text += "racing the best, ";
    text += std::to_string(progress.done) + (progress.total > 0 ? "/" + std::to_string(progress.total) : "") + " tried";
    char best[64] = ", none correct yet";
    if (progress.best != nullptr) std::snprintf(best, sizeof best, ", best %.1f us", progress.best->measurement.median_us);
    text += best;
    if (!list && progress.last != nullptr && progress.last->measurement.outcome != Outcome::correct)
        text += std::string(", last: ") + name(progress.last->measurement.outcome);
    text += ", " + duration_text(progress.seconds_left) + " left";
    if (list) text += " (all: " + duration_text(work.seconds_left) + ")";
    line.text = std::move(text);
    if (terminal_) {
        redraw();
        drawn_ = lines_.size();
    } else {
        std::fprintf(stderr, "%s\n", line.text.c_str());
    }
    std::fflush(stderr);
}

void ProgressLine::redraw() const {
    if (drawn_ > 1) std::fprintf(stderr, "\033[%zuA", drawn_ - 1);  // up to the first
    for (size_t i = 0; i < lines_.size(); ++i) std::fprintf(stderr, "%s\r%-78s", i > 0 ? "\n" : "", lines_[i].text.c_str());
}

}  // namespace tilewright::cli
