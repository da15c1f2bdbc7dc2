// The table of `tilewright db` and what its commands share.
#include "cli/db/commands.h"

#include "tilewright/tuning.h"

namespace tilewright::cli {
namespace {

constexpr Command table[] = {
    {"info", "what a database holds, or which databases lookups use", db_info},
    {"check", "is a database sound, and do its rows make sense?", db_check},
    {"verify", "time a sample of rows again on this device: do they still hold?", db_verify},
    {"merge", "combine databases into a new one", db_merge},
    {"export", "winners or all measurements as json, csv or t4", db_export},
    {"import", "store rows of json, another database, t4 or AOTriton's tables", db_import},
    {"prune", "remove what is no longer of use", db_prune},
    {"diff", "where the winners of two databases differ", db_diff},
};

}  // namespace

std::span<const Command> db_commands() { return table; }

Result<std::string> database_argument(const std::vector<std::string>& files) {
    if (files.size() > 1) return invalid_argument("one database file is wanted, not " + std::to_string(files.size()));
    if (!files.empty()) return files.front();
    const std::string path = user_database_path();
    if (path.empty()) return invalid_argument("no file is given, and neither TILEWRIGHT_DB nor HOME says where the user database is");
    return path;
}

std::string utc(int64_t seconds) {
    if (seconds == 0) return "never";
    const auto time = static_cast<std::time_t>(seconds);
    std::tm parts{};
    char text[32];
    if (!gmtime_r(&time, &parts) || std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) return std::to_string(seconds);
    return text;
}

}  // namespace tilewright::cli
