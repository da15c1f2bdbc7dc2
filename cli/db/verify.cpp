// tilewright db verify: do a database's times still hold on this device?
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/db/commands.h"
#include "tuner/remeasure.h"

namespace tilewright::cli {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Remeasured& again) {
    Json json = {{"problem", to_text(again.row.problem)}, {"config", Json::parse(tilewright::to_json(again.row.measurement.config))},
                 {"median_us", again.row.measurement.median_us}, {"measured_at", utc(again.row.measurement.measured_at)},
                 {"outcome_now", name(again.now.outcome)}, {"agrees", again.disagreement.empty()}};
    if (again.ratio > 0) json["median_us_now"] = again.now.timings[0].median_us, json["ratio"] = again.ratio;
    if (!again.disagreement.empty()) json["disagreement"] = again.disagreement;
    return json;
}

}  // namespace

int db_verify(const Arguments& arguments) {
    std::vector<std::string> files;
    std::string device = "cpu:0";
    RemeasureOptions options;
    int seed = 1;
    bool all = false;
    CommandLine line("db verify", "times a sample of rows again on this device and says which disagree; exits with 1 if any does");
    line.positional("FILE", &files, "a tuning database; default: the user's")
        .option("sample", &options.sample, "N", "rows to draw")
        .option("device", &device, "ID", "where to run them; rows of other devices are not drawn")
        .option("seed", &seed, "S", "equal seeds draw equal rows")
        .option("tolerance", &options.tolerance, "PART", "by which medians may differ, beside the spreads of both")
        .option("seconds", &options.seconds, "S", "for timing each")
        .flag("all", &all, "draw from every correct measurement, not from the winners alone")
        .example("tilewright db verify t.db --sample 20 --device nvidia:0");
    if (auto exit = line.parse(arguments)) return *exit;
    options.seed = static_cast<uint32_t>(seed);
    options.winners = !all;
    std::error_code unknown;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
    options.worker_command = {unknown ? "tilewright" : self.string(), "worker"};
    const Result<std::string> path = database_argument(files);
    if (!path.ok()) return fail("db verify", path.status());
    Result<Store> store = Store::open(*path, StoreMode::read);
    if (!store.ok()) return fail("db verify", store.status());
    const Result<RemeasureReport> report = remeasure(*store, device, options);
    if (!report.ok()) return fail("db verify", report.status());
    const auto disagree = std::count_if(report->sample.begin(), report->sample.end(), [](const Remeasured& again) { return !again.disagreement.empty(); });
    if (line.json()) {
        Json list = Json::array();
        for (const Remeasured& again : report->sample) list.push_back(to_json(again));
        std::printf("%s\n", Json{{"path", *path}, {"rows", report->rows}, {"sampled", report->sample.size()}, {"disagree", disagree}, {"sample", list}}.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    } else {
        for (const Remeasured& again : report->sample) {
            std::printf("%-8s %6.3f  %s  %s\n", again.disagreement.empty() ? "agrees" : "DISAGREES", again.ratio, to_text(again.row.problem).c_str(), tilewright::to_json(again.row.measurement.config).c_str());
            if (!again.disagreement.empty()) std::printf("         %s\n", again.disagreement.c_str());
        }
        std::printf("%s: %zu of %lld rows of this device timed again, %td disagree\n", path->c_str(), report->sample.size(), (long long)report->rows, disagree);
    }
    return disagree == 0 ? exit_success : exit_no;
}

}  // namespace tilewright::cli
