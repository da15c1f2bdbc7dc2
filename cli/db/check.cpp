// tilewright db check: is a database sound, and do its rows make sense?
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/db/commands.h"
#include "cli/db/hooks.h"

namespace tilewright::cli {

int db_check(const Arguments& arguments) {
    std::vector<std::string> files;
    CommandLine line("db check", "checks a database from its bytes up: integrity, references, stale rows, impossible times, rows that disagree");
    line.positional("FILE", &files, "a tuning database; default: the user's").example("tilewright db check t.db");
    if (auto exit = line.parse(arguments)) return *exit;
    const Result<std::string> path = database_argument(files);
    if (!path.ok()) return fail("db check", path.status());
    Result<Store> store = Store::open(*path, StoreMode::read);
    if (!store.ok()) return fail("db check", store.status());
    const Result<std::vector<Finding>> findings = check_database(*store, std::time(nullptr), check_hooks());
    if (!findings.ok()) return fail("db check", findings.status());
    if (line.json()) {
        auto list = nlohmann::ordered_json::array();
        for (const Finding& finding : *findings) list.push_back({{"kind", name(finding.kind)}, {"text", finding.text}});
        std::printf("%s\n", nlohmann::ordered_json{{"path", *path}, {"sound", findings->empty()}, {"findings", list}}.dump(2).c_str());
    } else {
        for (const Finding& finding : *findings) std::printf("%s: %s\n", name(finding.kind), finding.text.c_str());
        std::printf("%s: %zu findings\n", path->c_str(), findings->size());
    }
    return findings->empty() ? exit_success : exit_no;
}

}  // namespace tilewright::cli
