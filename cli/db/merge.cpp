// tilewright db merge, prune, diff.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/db/commands.h"
#include "db/json_rows.h"
#include "db/tools/merge.h"

namespace tilewright::cli {

using Json = nlohmann::ordered_json;

int db_merge(const Arguments& arguments) {
    std::vector<std::string> files;
    std::string out;
    CommandLine line("db merge", "writes the union of databases to a new file; of measurements of one candidate the best founded is kept");
    line.positional("FILE", &files, "tuning databases").option("out", &out, "FILE", "the new database; must not exist");
    line.example("tilewright db merge a.db b.db --out all.db");
    if (auto exit = line.parse(arguments)) return *exit;
    if (files.empty() || out.empty()) return fail("db merge", "databases and --out FILE are needed");
    const Result<MergeReport> report = merge_databases(files, out);
    if (!report.ok()) return fail("db merge", report.status());
    if (line.json()) {
        std::printf("%s\n", Json{{"out", out}, {"rows", report->rows}, {"repeated", report->repeated}, {"unreadable", report->unreadable}, {"conflicts", report->conflicts}}.dump(2).c_str());
        return exit_success;
    }
    for (const std::string& conflict : report->conflicts) std::printf("correct in one, wrong in another, kept as wrong: %s\n", conflict.c_str());
    std::printf("%s: %lld measurements; %lld repeated ones dropped, %lld not known to this build left out\n", out.c_str(), (long long)report->rows,
                (long long)report->repeated, (long long)report->unreadable);
    return exit_success;
}

int db_prune(const Arguments& arguments) {
    std::vector<std::string> files;
    PruneRules rules;
    int days = 0;
    bool keep_old = false;
    CommandLine line("db prune", "removes measurements that a newer toolchain has replaced, and more if asked to; winners stay");
    line.positional("FILE", &files, "a tuning database; default: the user's")
        .flag("keep-old-toolchains", &keep_old, "do not remove measurements by replaced toolchains")
        .flag("failures", &rules.failures, "remove candidates that failed; tuning will try them again")
        .option("keep", &rules.keep, "N", "keep only the N fastest candidates of each problem; 0: all")
        .option("older-than", &days, "DAYS", "remove measurements older than that; 0: none")
        .example("tilewright db prune t.db --failures --keep 8");
    if (auto exit = line.parse(arguments)) return *exit;
    if (rules.keep < 0 || days < 0) return fail("db prune", "--keep and --older-than are not negative");
    rules.old_toolchains = !keep_old;
    if (days > 0) rules.before = std::time(nullptr) - int64_t{days} * 86400;
    const Result<std::string> path = database_argument(files);
    if (!path.ok()) return fail("db prune", path.status());
    Result<Store> store = Store::open(*path, StoreMode::write);
    if (!store.ok()) return fail("db prune", store.status());
    const Result<int64_t> removed = prune(*store, rules);
    if (!removed.ok()) return fail("db prune", removed.status());
    if (line.json()) std::printf("%s\n", Json{{"path", *path}, {"removed", *removed}}.dump(2).c_str());
    else std::printf("%s: %lld measurements removed\n", path->c_str(), (long long)*removed);
    return exit_success;
}

int db_diff(const Arguments& arguments) {
    std::vector<std::string> files;
    CommandLine line("db diff", "shows where the winners of two databases differ; exits with 1 if they do");
    line.positional("FILE", &files, "two tuning databases").example("tilewright db diff old.db new.db");
    if (auto exit = line.parse(arguments)) return *exit;
    if (files.size() != 2) return fail("db diff", "two databases are wanted, not " + std::to_string(files.size()));
    Result<Store> a = Store::open(files[0], StoreMode::read), b = Store::open(files[1], StoreMode::read);
    for (const auto* store : {&a, &b}) {
        if (!store->ok()) return fail("db diff", store->status());
    }
    const Result<std::vector<WinnerPair>> pairs = diff_winners(*a, *b);
    if (!pairs.ok()) return fail("db diff", pairs.status());
    auto list = Json::array();
    for (const WinnerPair& pair : *pairs) {
        const auto side = [](const std::optional<MeasurementRow>& row) { return row ? Json::parse(to_json_line(*row)) : Json(); };
        list.push_back({{"problem", pair.problem}, {"device", pair.device}, {"a", side(pair.a)}, {"b", side(pair.b)}});
        if (line.json()) continue;
        std::printf("%s on %s\n", pair.problem.c_str(), pair.device.c_str());
        for (const auto& [mark, row] : {std::pair{'-', &pair.a}, {'+', &pair.b}}) {
            if (*row) std::printf("%c %10.2f us  %s\n", mark, (*row)->measurement.median_us, to_json((*row)->measurement.config).c_str());
        }
    }
    if (line.json()) std::printf("%s\n", list.dump(2).c_str());
    else std::printf("%zu winners differ\n", pairs->size());
    return pairs->empty() ? exit_success : exit_no;
}

}  // namespace tilewright::cli
