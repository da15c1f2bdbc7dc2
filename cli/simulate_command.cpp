// tilewright simulate: how near the optimum a search strategy comes on a recorded space, without a device.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "tuner/replay.h"
#include "tuner/strategy.h"

namespace tilewright::cli {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const RecordedSpace& recorded, const SimulationOptions& options, const Simulation& simulation) {
    Json results = Json::array(), reached = Json::array();
    for (const Simulation::Row& row : simulation.rows) results.push_back({{"evaluations", row.evaluations}, {"median", row.median}, {"p10", row.p10}});
    for (const Simulation::Reached& each : simulation.reached)
        reached.push_back({{"fraction", each.fraction}, {"evaluations", std::isfinite(each.evaluations) ? Json(each.evaluations) : Json(nullptr)}});
    return {{"space", recorded.name},       {"configurations", recorded.space.size()},
            {"missing", recorded.missing},
            {"strategy", options.strategy}, {"repeats", options.repeats},
            {"seed", options.seed},         {"results", results},
            {"reached", reached},           {"score", simulation.score},
            {"seconds", simulation.seconds}};
}

void print_table(const RecordedSpace& recorded, const SimulationOptions& options, const Simulation& simulation) {
    std::printf("%s: %u configurations; %s, %d searches, %.1f s\n\n", recorded.name.c_str(), recorded.space.size(), options.strategy.c_str(), options.repeats,
                simulation.seconds);
    if (recorded.missing > 0) std::printf("%u configurations have no result and count as failed\n\n", recorded.missing);
    std::printf("%12s  %20s  %16s\n", "evaluations", "median of optimum", "10th percentile");
    for (const Simulation::Row& row : simulation.rows) std::printf("%12d  %20.3f  %16.3f\n", row.evaluations, row.median, row.p10);
    std::printf("\n");
    for (const Simulation::Reached& each : simulation.reached) {
        if (std::isfinite(each.evaluations))
            std::printf("%.0f %% of the optimum after %.0f evaluations (median)\n", each.fraction * 100, each.evaluations);
        else
            std::printf("%.0f %% of the optimum not reached by half of the searches\n", each.fraction * 100);
    }
    std::printf("score against random search: %.3f (0: as random, 1: the optimum at once)\n", simulation.score);
}

bool is_database(const std::string& path) {
    char start[16] = {};
    std::ifstream(path, std::ios::binary).read(start, sizeof start);
    return std::string_view(start) == "SQLite format 3";
}

}  // namespace

int simulate_command(const Arguments& arguments) {
    CommandLine line("simulate", "replays a search strategy on a recorded space (T4 results, also .gz, or a tuning database), without a device");
    std::string path, t1_path, problem, save;
    SimulationOptions options;
    options.strategy = default_strategy;
    int64_t seed = 1;
    bool list = false;
    line.option("space", &path, "FILE", "T4 results file, or a tuning database");
    line.option("t1", &t1_path, "FILE", "with T4 results: the T1 file of their space, also .gz; what it allows and the results lack counts as failed");
    line.option("save", &save, "FILE", "write the space, with the model's predictions where there are some, as T4 results, .gz too, and replay nothing");
    line.option("problem", &problem, "TEXT", "which one of a database with several");
    line.option("strategy", &options.strategy, "NAME[:OPTION=VALUE,...]", "search strategy; --list shows them");
    line.option("evaluations", &options.evaluations, "N", "configurations each search may try");
    line.option("repeats", &options.repeats, "N", "searches with different seeds");
    line.option("seed", &seed, "N", "of the first search");
    line.option("threads", &options.threads, "N", "searches at the same time; 0: one per core");
    line.flag("list", &list, "list strategies and their options");
    line.example("tilewright simulate --space convolution_A100.T4.json.gz --strategy greedy --repeats 100");
    if (auto exit = line.parse(arguments)) return *exit;
    if (list) {
        for (const StrategyRow& row : strategies()) {
            std::printf("%-12s %s\n", row.name, row.summary);
            for (const StrategyOption& option : row.options) std::printf("    %-14s %-6g %s\n", option.name, option.value, option.help);
        }
        return exit_success;
    }
    if (path.empty()) return fail("simulate", "--space is missing: a T4 results file or a tuning database");
    options.seed = static_cast<uint64_t>(seed);
    if (!problem.empty()) {
        const Result<Problem> parsed = parse_problem(problem);
        if (!parsed.ok()) return fail("simulate", parsed.status());
        problem = to_text(*parsed);
    }
    if (!t1_path.empty() && is_database(path)) return fail("simulate", "--t1 goes with T4 results; a tuning database knows its space");
    const auto recorded = is_database(path) ? read_database_space(path, problem) : read_t4(path, t1_path);
    if (!recorded.ok()) return fail("simulate", recorded.status());
    if (!save.empty()) {
        const Status written = write_t4(*recorded, save);
        return written.ok() ? exit_success : fail("simulate", written);
    }
    const auto simulation = simulate(*recorded, options);
    if (!simulation.ok()) return fail("simulate", simulation.status());
    if (line.json())
        std::printf("%s\n", to_json(*recorded, options, *simulation).dump(2).c_str());
    else
        print_table(*recorded, options, *simulation);
    return exit_success;
}

}  // namespace tilewright::cli
