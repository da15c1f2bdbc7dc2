// tilewright db info: one file's contents, or the layers that lookups use.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/db/commands.h"
#include "db/store.h"
#include "tilewright/tuning.h"

namespace tilewright::cli {
namespace {

int print_file(const std::string& path, bool json) {
    Result<Store> store = Store::open(path, StoreMode::read);
    if (!store.ok()) return fail("db info", store.status());
    Result<StoreInfo> info = store->info();
    if (!info.ok()) return fail("db info", info.status());
    if (json) {
        const nlohmann::ordered_json object = {
            {"path", info->path}, {"schema", info->schema}, {"journal", info->journal}, {"bytes", info->bytes},
            {"devices", info->devices}, {"toolchains", info->toolchains}, {"problems", info->problems}, {"configs", info->configs},
            {"measurements", info->measurements}, {"winners", info->winners}, {"misses", info->misses}, {"newest", utc(info->newest_at)},
            {"note", store->note()}};
        std::printf("%s\n", object.dump(2).c_str());
        return exit_success;
    }
    std::printf("%s: schema version %d, journal %s, %s\n", info->path.c_str(), info->schema, info->journal.c_str(), human_bytes(static_cast<double>(info->bytes)).c_str());
    std::printf("  %lld winners among %lld measurements of %lld configs for %lld problems, on %lld devices, by %lld toolchains\n",
                (long long)info->winners, (long long)info->measurements, (long long)info->configs, (long long)info->problems,
                (long long)info->devices, (long long)info->toolchains);
    std::printf("  newest measurement %s; %lld problems were asked for and not found\n", utc(info->newest_at).c_str(), (long long)info->misses);
    if (!store->note().empty()) std::printf("  note: %s\n", store->note().c_str());
    return exit_success;
}

int print_layers(bool json) {
    DatabaseOptions options;
    options.log_misses = false;
    const TuningDatabase database = TuningDatabase::open(options);
    auto list = nlohmann::ordered_json::array();
    if (!json) std::printf("%-8s %8s  %s\n", "layer", "winners", "file");
    for (const DatabaseLayer& layer : database.layers()) {
        const std::string state = layer.status.ok() ? layer.note : layer.status.message();
        list.push_back({{"path", layer.path}, {"user", layer.user}, {"used", layer.status.ok()}, {"winners", layer.rows}, {"predictions", layer.predictions}, {"note", state}});
        if (json) continue;
        std::printf("%-8s %8lld  %s%s%s\n", layer.user ? "user" : "system", (long long)layer.rows, layer.path.c_str(), state.empty() ? "" : ": ", state.c_str());
    }
    if (json) std::printf("%s\n", list.dump(2).c_str());
    return exit_success;
}

}  // namespace

int db_info(const Arguments& arguments) {
    std::vector<std::string> files;
    CommandLine line("db info", "shows what a database file holds; without a file, which databases lookups use, in their order");
    line.positional("FILE", &files, "a tuning database").example("tilewright db info t.db --json");
    if (auto exit = line.parse(arguments)) return *exit;
    if (files.empty()) return print_layers(line.json());
    Result<std::string> path = database_argument(files);
    return path.ok() ? print_file(*path, line.json()) : fail("db info", path.status());
}

}  // namespace tilewright::cli
