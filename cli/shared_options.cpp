// What several commands take: a problem or a model's shape, an architecture, a duration.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "cli/cli.h"
#include "core/models.h"
#include "core/scratch_directory.h"
#include "tuner/work_list.h"

namespace tilewright::cli {

namespace {

constexpr const char* problem_help = "e.g. forward:b4,hq32,hkv8,sq4096,skv4096,d128,bf16,causal";

void add_model_options(CommandLine& line, std::string* model, std::string* phase, int64_t* seq, int64_t* batch) {
    line.option("model", model, "NAME", "a public model's shape instead, e.g. llama-3.1-8b ('tilewright models' lists them)");
    line.option("phase", phase, "prefill|decode", "with --model: many queries, or one");
    line.option("seq", seq, "N", "with --model: sequence length");
    line.option("batch", batch, "B", "with --model: sequences");
}

Result<Problem> problem_of_model(const std::string& model, const std::string& phase_name, int64_t seq, int64_t batch) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Phase phase, parse_phase(phase_name));
    return model_problem(model, phase, seq, batch);
}

}  // namespace

void ProblemOptions::add_to(CommandLine& line) {
    line.option("problem", &problem_, "TEXT", problem_help);
    add_model_options(line, &model_, &phase_, &seq_, &batch_);
}

Result<Problem> ProblemOptions::problem() const {
    if (problem_.empty() == model_.empty())
        return invalid_argument(std::string(model_.empty() ? "no problem given" : "both --problem and --model given") +
                                ": give either --problem TEXT or --model NAME [--phase prefill|decode --seq N --batch B]");
    if (!problem_.empty()) return parse_problem(problem_);
    return problem_of_model(model_, phase_, seq_, batch_);
}

void ProblemListOptions::add_to(CommandLine& line) {
    line.option("problem", &texts_, "TEXT", (std::string(problem_help) + "; may be given several times").c_str());
    line.option("problems", &file_, "FILE", "a file with one problem text a line; # begins a comment");
    add_model_options(line, &model_, &phase_, &seq_, &batch_);
}

Result<std::vector<Problem>> ProblemListOptions::problems() const {
    std::vector<Problem> all, in_file;
    for (const std::string& text : texts_) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const Problem problem, parse_problem(text));
        all.push_back(problem);
    }
    if (!file_.empty()) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::string text, read_file(file_));
        TILEWRIGHT_ASSIGN_OR_RETURN(in_file, parse_problem_list(text, file_));
    }
    all.insert(all.end(), in_file.begin(), in_file.end());
    if (!model_.empty()) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const Problem problem, problem_of_model(model_, phase_, seq_, batch_));
        all.push_back(problem);
    }
    if (all.empty())
        return invalid_argument("no problem given: give --problem TEXT, --problems FILE or --model NAME [--phase prefill|decode --seq N --batch B]");
    std::vector<Problem> unique;
    for (const Problem& problem : all)
        if (std::ranges::find(unique, problem) == unique.end()) unique.push_back(problem);
    return unique;
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
