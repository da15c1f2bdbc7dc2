// tilewright compare: devices of any vendor, compared by their tuning databases.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backends/arch.h"
#include "cli/cli.h"
#include "core/scratch_directory.h"
#include "db/tools/compare.h"

namespace tilewright::cli {
namespace {

using Json = nlohmann::ordered_json;

// Of the matrix rate that the table of architectures gives a device of so many units; 0 if it is not known there.
double share_of_peak(const ComparedWinner& winner, const Problem& problem, const DeviceClass& device) {
    const Arch* const arch = find_arch(device.arch);
    if (!arch || arch->units < 1) return 0;
    const double rate = problem.dtype == DType::fp32 ? arch->matrix_tflops_32bit : arch->matrix_tflops_16bit;
    return rate > 0 ? winner.tflops / (rate * device.units / arch->units) : 0;
}

void fill_in_shares(Comparison& comparison) {
    for (ComparedProblem& compared : comparison.problems)
        for (size_t i = 0; i < compared.winners.size(); ++i)
            if (auto& winner = compared.winners[i]; winner) winner->share_of_peak = share_of_peak(*winner, compared.problem, comparison.devices[i]);
}

Json to_json(const Comparison& comparison) {
    Json devices = Json::array(), problems = Json::array(), matrix = Json::array();
    for (const DeviceClass& device : comparison.devices) {
        devices.push_back({{"backend", device.backend}, {"arch", device.arch}, {"name", device.name}, {"units", device.units}});
    }
    for (const ComparedProblem& compared : comparison.problems) {
        Json winners = Json::array();
        for (const auto& winner : compared.winners) {
            if (!winner) winners.push_back(nullptr);
            else winners.push_back({{"median_us", winner->median_us}, {"tflops", winner->tflops}, {"share_of_peak", winner->share_of_peak},
                                    {"config", Json::parse(tilewright::to_json(winner->config))}});
        }
        problems.push_back({{"problem", to_text(compared.problem)}, {"winners", winners}});
    }
    for (const auto& row : comparison.portability) {
        Json cells = Json::array();
        for (const Portability& cell : row) cells.push_back({{"fraction", cell.fraction}, {"problems", cell.problems}, {"failed", cell.failed}});
        matrix.push_back(cells);
    }
    return {{"devices", devices}, {"problems", problems}, {"portability", matrix}};
}

void print_table(const Comparison& comparison) {
    for (size_t i = 0; i < comparison.devices.size(); ++i) {
        const DeviceClass& device = comparison.devices[i];
        std::printf("[%zu] %s (%s, %d units)\n", i, device.name.c_str(), device.arch.c_str(), device.units);
    }
    std::printf("\n%-60s %4s %12s %10s %8s %12s\n", "problem", "dev", "us", "TFLOP/s", "of peak", "tile");
    for (const ComparedProblem& compared : comparison.problems) {
        std::string text = to_text(compared.problem);
        for (size_t i = 0; i < compared.winners.size(); ++i) {
            const auto& winner = compared.winners[i];
            if (!winner) continue;
            char percent[16] = "-";
            if (winner->share_of_peak > 0) std::snprintf(percent, sizeof percent, "%.0f %%", 100 * winner->share_of_peak);
            std::printf("%-60s %4zu %12.1f %10.3f %8s %6d x %3d\n", text.c_str(), i, winner->median_us, winner->tflops, percent, winner->config.block_q, winner->config.block_kv);
            text.clear();
        }
    }
    std::printf("\nwinners of the row's device on the column's, as a share of its own best (problems measured so)\n%8s", "");
    for (size_t to = 0; to < comparison.devices.size(); ++to) std::printf(" %11s[%zu]", "", to);
    std::printf("\n");
    for (size_t from = 0; from < comparison.devices.size(); ++from) {
        std::printf("%5s[%zu]", "", from);
        for (const Portability& cell : comparison.portability[from]) {
            if (cell.problems > 0) std::printf("  %5.1f %% (%3d)", 100 * cell.fraction, cell.problems);
            else std::printf(" %13s", "-");
        }
        std::printf("\n");
    }
}

}  // namespace

int compare_command(const Arguments& arguments) {
    std::vector<std::string> files;
    std::string html;
    CommandLine line("compare", "compares devices by their tuning databases: time, rate, share of peak, tile, and how well winners carry over");
    line.positional("DB", &files, "tuning databases").option("html", &html, "FILE", "write a page instead of printing");
    line.example("tilewright compare mi300x.db h200.db --html devices.html");
    if (auto exit = line.parse(arguments)) return *exit;
    if (files.empty()) return fail("compare", "at least one tuning database is needed");
    Result<Comparison> comparison = compare_databases(files);
    if (!comparison.ok()) return fail("compare", comparison.status());
    fill_in_shares(*comparison);
    if (!html.empty()) {
        const Status written = write_file(html, to_html(*comparison));
        return written.ok() ? exit_success : fail("compare", written);
    }
    if (line.json()) std::printf("%s\n", to_json(*comparison).dump(2).c_str());
    else print_table(*comparison);
    return exit_success;
}

}  // namespace tilewright::cli
