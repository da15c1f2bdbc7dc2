// What several commands take: a problem or a model's shape, an architecture, a duration.
#include <charconv>
#include <cmath>
#include <cstdio>

#include "cli/cli.h"
#include "core/models.h"

namespace tilewright::cli {

void ProblemOptions::add_to(CommandLine& line) {
    line.option("problem", &problem_, "TEXT", "e.g. forward:b4,hq32,hkv8,sq4096,skv4096,d128,bf16,causal");
    line.option("model", &model_, "NAME", "a public model's shape instead, e.g. llama-3.1-8b ('tilewright models' lists them)");
    line.option("phase", &phase_, "prefill|decode", "with --model: many queries, or one");
    line.option("seq", &seq_, "N", "with --model: sequence length");
    line.option("batch", &batch_, "B", "with --model: sequences");
}

Result<Problem> ProblemOptions::problem() const {
    if (problem_.empty() == model_.empty())
        return invalid_argument(std::string(model_.empty() ? "no problem given" : "both --problem and --model given") +
                                ": give either --problem TEXT or --model NAME [--phase prefill|decode --seq N --batch B]");
    if (!problem_.empty()) return parse_problem(problem_);
    TILEWRIGHT_ASSIGN_OR_RETURN(Phase phase, parse_phase(phase_));
    return model_problem(model_, phase, seq_, batch_);
}

Result<Arch> arch_named(const std::string& name) {
    if (const Arch* arch = find_arch(name)) return *arch;
    std::string names = "cpu";
    for (const Arch& arch : known_archs()) names += ", " + arch.name;
    return Status(StatusCode::not_found, "unknown architecture '" + name + "': known are " + names);
}

Result<double> parse_duration(const std::string& text) {
    double value = 0, unit = 1;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    std::string suffix(end, text.data() + text.size());
    if (suffix == "m") unit = 60;
    else if (suffix == "h") unit = 3600;
    else if (suffix != "" && suffix != "s") error = std::errc::invalid_argument;
    if (error != std::errc() || !(value > 0) || !std::isfinite(value))
        return invalid_argument("'" + text + "' is no duration: expected a positive number of seconds, or with a unit 60s, 5m, 2h");
    return value * unit;
}

std::string human_bytes(double bytes) {
    const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 5) bytes /= 1024, ++unit;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : bytes < 10 ? "%.2f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

}  // namespace tilewright::cli
