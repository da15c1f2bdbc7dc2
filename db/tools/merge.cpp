// merge, prune and diff.
#include "db/tools/merge.h"

#include <cstdio>
#include <filesystem>
#include <map>

#include "db/rows.h"
#include "db/store_state.h"

namespace tilewright {
namespace {

std::string text_of(const DeviceClass& device) {
    return device.name + " (" + device.backend + ", " + device.arch + ", " + device.family + ", " + std::to_string(device.units) + " units)";
}

// Equal for measurements of one candidate.
std::string candidate_key(const MeasurementRow& row) {
    const Toolchain& t = row.toolchain;
    return to_text(row.problem) + '\n' + text_of(row.device) + '\n' + t.compiler + '\n' + t.flags + '\n' + t.kernel_source + '\n' + to_json(row.measurement.config);
}

bool is_wrong(const Measurement& m) { return m.outcome == Outcome::correctness; }
bool is_timed(const Measurement& m) { return m.outcome == Outcome::correct; }

// The rule that merge.h states.
bool is_better(const Measurement& a, const Measurement& b) {
    if (is_wrong(a) != is_wrong(b)) return is_wrong(a);
    if (is_timed(a) != is_timed(b)) return is_timed(a);
    if ((a.race > 0) != (b.race > 0)) return a.race > 0;
    if (a.samples != b.samples) return a.samples > b.samples;
    const double noise = (a.p80_us - a.p20_us) + (b.p80_us - b.p20_us);
    if (std::abs(a.median_us - b.median_us) > noise) return a.median_us < b.median_us;
    return a.measured_at > b.measured_at;
}

Status write_merged(const std::map<std::string, MeasurementRow>& chosen, const std::string& path) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Store store, Store::open(path, StoreMode::create));
    std::vector<MeasurementRow> rows;
    for (const auto& [key, row] : chosen) rows.push_back(row);
    TILEWRIGHT_RETURN_IF_ERROR(store.add_all(rows));
    return store.compact();
}

}  // namespace

Result<MergeReport> merge_databases(const std::vector<std::string>& inputs, const std::string& out) {
    if (std::error_code ignored; std::filesystem::exists(out, ignored)) return invalid_argument(out + " exists; merge writes a new file");
    MergeReport report;
    std::map<std::string, MeasurementRow> chosen;
    for (const std::string& input : inputs) {
        TILEWRIGHT_ASSIGN_OR_RETURN(Store store, Store::open(input, StoreMode::read));
        TILEWRIGHT_RETURN_IF_ERROR(store.for_each(
            [&](const MeasurementRow& row) {
                const auto [at, added] = chosen.try_emplace(candidate_key(row), row);
                if (added) return Status();
                ++report.repeated;
                Measurement& known = at->second.measurement;
                if ((is_wrong(known) && is_timed(row.measurement)) || (is_timed(known) && is_wrong(row.measurement))) {
                    report.conflicts.push_back(to_text(row.problem) + " on " + row.device.name + ", " + to_json(row.measurement.config));
                }
                if (is_better(row.measurement, known)) known = row.measurement;
                return Status();
            },
            &report.unreadable));
    }
    report.rows = static_cast<int64_t>(chosen.size());
    const std::string unfinished = out + ".unfinished";
    const auto remove_unfinished = [&] {
        std::error_code ignored;  // what cannot be removed was not made
        for (const char* suffix : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(unfinished + suffix, ignored);
    };
    remove_unfinished();
    Status status = write_merged(chosen, unfinished);
    if (status.ok() && std::rename(unfinished.c_str(), out.c_str()) != 0) status = {StatusCode::io, unfinished + " cannot be renamed to " + out};
    if (status.ok()) return report;
    remove_unfinished();
    return status;
}

Result<int64_t> prune(Store& store, const PruneRules& rules) {
    sqlite::Connection& connection = store.state().connection;
    int64_t removed = 0;
    {
        TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::begin(connection));
        const auto remove = [&](const char* sql, int64_t value) -> Status {
            TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const statement, connection.prepare(sql));
            if (value >= 0) statement->bind(value);
            TILEWRIGHT_RETURN_IF_ERROR(statement->run());
            removed += sqlite3_changes64(connection.handle());
            return {};
        };
        if (rules.old_toolchains) {
            TILEWRIGHT_RETURN_IF_ERROR(remove("DELETE FROM measurement WHERE id IN (SELECT m.id FROM measurement m JOIN newest n"
                                              " ON n.problem = m.problem AND n.device = m.device WHERE m.toolchain <> n.toolchain)", -1));
        }
        if (rules.failures) TILEWRIGHT_RETURN_IF_ERROR(remove("DELETE FROM measurement WHERE outcome <> 1", -1));
        if (rules.before > 0) {
            TILEWRIGHT_RETURN_IF_ERROR(remove("DELETE FROM measurement WHERE measured_at < ? AND id NOT IN (SELECT measurement FROM best)", rules.before));
        }
        if (rules.keep > 0) {
            TILEWRIGHT_RETURN_IF_ERROR(remove("DELETE FROM measurement WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY problem,"
                                              " device, toolchain ORDER BY race DESC, place, median_us, measured_at, config, id) AS place FROM measurement"
                                              " WHERE outcome = 1) WHERE place > ?)", rules.keep));
        }
        TILEWRIGHT_RETURN_IF_ERROR(connection.execute(
            "DELETE FROM problem WHERE id NOT IN (SELECT problem FROM measurement);"
            "DELETE FROM config WHERE id NOT IN (SELECT config FROM measurement);"
            "DELETE FROM toolchain WHERE id NOT IN (SELECT toolchain FROM measurement);"
            "DELETE FROM device WHERE id NOT IN (SELECT device FROM measurement) AND id NOT IN (SELECT device FROM miss)"));
        TILEWRIGHT_RETURN_IF_ERROR(transaction.commit());
    }
    TILEWRIGHT_RETURN_IF_ERROR(connection.execute("VACUUM"));
    return removed;
}

Result<std::vector<WinnerPair>> diff_winners(Store& a, Store& b) {
    std::map<std::pair<std::string, std::string>, WinnerPair> pairs;
    const auto collect = [&](Store& store, std::optional<MeasurementRow> WinnerPair::* side) {
        return store.for_each_best([&](const MeasurementRow& row) {
            WinnerPair& pair = pairs[{to_text(row.problem), text_of(row.device)}];
            pair.problem = to_text(row.problem);
            pair.device = row.device.name;
            pair.*side = row;
            return Status();
        });
    };
    TILEWRIGHT_RETURN_IF_ERROR(collect(a, &WinnerPair::a));
    TILEWRIGHT_RETURN_IF_ERROR(collect(b, &WinnerPair::b));
    std::vector<WinnerPair> different;
    for (const auto& [key, pair] : pairs) {
        if (!pair.a || !pair.b || pair.a->measurement.config != pair.b->measurement.config) different.push_back(pair);
    }
    return different;
}

}  // namespace tilewright
