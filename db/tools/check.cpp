// Every check of `db check`, from the bytes up.
#include "db/tools/check.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "db/rows.h"
#include "db/store_state.h"

namespace tilewright {
namespace {

// Medians of one config further apart than this were not measured under the same conditions.
constexpr double largest_ratio = 1.25;
// Clocks of a cluster's machines differ by so many seconds at most.
constexpr int64_t clock_slack = 3600;

using Findings = std::vector<Finding>;

void find(Findings& findings, FindingKind kind, std::string text) { findings.push_back({kind, std::move(text)}); }

Status check_bytes(sqlite::Connection& connection, Findings& findings) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const integrity, connection.prepare("PRAGMA integrity_check(20)"));
    while (true) {
        Result<bool> more = integrity->step();
        if (!more.ok()) {
            find(findings, FindingKind::damage, more.status().message());
            return {};
        }
        if (!*more) break;
        if (integrity->text(0) != "ok") find(findings, FindingKind::damage, "integrity: " + std::string(integrity->text(0)));
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const keys, connection.prepare("PRAGMA foreign_key_check"));
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, keys->step());
        if (!more) return {};
        find(findings, FindingKind::damage, "row " + std::to_string(keys->integer(1)) + " of " + std::string(keys->text(0)) + " refers to a " +
                                                std::string(keys->text(2)) + " that is not there");
    }
}

Status check_problems(sqlite::Connection& connection, Findings& findings) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const problems, connection.prepare(rows::select_problems));
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, problems->step());
        if (!more) return {};
        const std::string text(problems->text(rows::problem_columns + 1));
        const Result<Problem> problem = rows::read_problem(*problems);
        if (!problem.ok()) {
            find(findings, FindingKind::stale, "problem " + text + ": " + problem.status().message());
        } else if (to_text(*problem) != text) {
            find(findings, FindingKind::damage, "problem " + text + ": its columns say " + to_text(*problem));
        }
    }
}

Status check_configs(sqlite::Connection& connection, Findings& findings) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const configs, connection.prepare("SELECT json, hash FROM config"));
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, configs->step());
        if (!more) return {};
        const std::string json(configs->text(0));
        const Result<Config> config = parse_config(json);
        if (!config.ok()) {
            find(findings, FindingKind::stale, "config " + json.substr(0, 200) + ": " + config.status().message());
        } else if (rows::short_hash(json) != configs->text(1)) {
            find(findings, FindingKind::damage, "config " + json + ": its hash is not " + std::string(configs->text(1)));
        }
    }
}

// What one key's measurements say about one config.
struct Record {
    double least = 0, most = 0;
    bool correct = false, wrong = false;
};

class RowChecks {
public:
    RowChecks(int64_t now, const CheckHooks& hooks, Findings& findings) : now_(now), hooks_(hooks), findings_(findings) {}

    Status add(const MeasurementRow& row) {
        const Measurement& m = row.measurement;
        const std::string config = to_json(m.config);
        const std::string where = "measurement " + std::to_string(m.id) + " (" + to_text(row.problem) + " on " + row.device.name + ", " + config + ")";
        if (Status status = check_measurement(m); !status.ok()) find(findings_, FindingKind::impossible, where + ": " + status.message());
        if (m.measured_at > now_ + clock_slack) find(findings_, FindingKind::impossible, where + ": was measured in the future");
        if (m.outcome == Outcome::correct) check_correct(row, where);
        if (m.outcome != Outcome::correct && m.outcome != Outcome::correctness) return {};
        Record& record = records_[{to_text(row.problem) + " on " + row.device.name + " (" + row.device.arch + ", " + std::to_string(row.device.units) + " units)",
                                   row.toolchain.compiler + row.toolchain.flags + row.toolchain.kernel_source, config}];
        (m.outcome == Outcome::correct ? record.correct : record.wrong) = true;
        if (m.outcome != Outcome::correct) return {};
        record.least = record.least > 0 ? std::min(record.least, m.median_us) : m.median_us;
        record.most = std::max(record.most, m.median_us);
        return {};
    }

    void finish() {
        for (const auto& [key, record] : records_) {
            const std::string what = std::get<0>(key) + ", " + std::get<2>(key);
            if (record.correct && record.wrong) find(findings_, FindingKind::disagreement, what + ": correct in one row, wrong in another");
            if (record.least > 0 && record.most > largest_ratio * record.least) {
                find(findings_, FindingKind::disagreement, what + ": medians from " + std::to_string(record.least) + " to " + std::to_string(record.most) + " us");
            }
        }
    }

private:
    void check_correct(const MeasurementRow& row, const std::string& where) {
        const Measurement& m = row.measurement;
        const double least = hooks_.least_us ? hooks_.least_us(row.problem, row.device) : 0;
        if (m.median_us < least) find(findings_, FindingKind::impossible, where + ": " + std::to_string(m.median_us) + " us is below the device's limit of " + std::to_string(least) + " us");
        if (!hooks_.legal || !row.newest_toolchain) return;
        if (Status status = hooks_.legal(row.problem, row.device, m.config); !status.ok()) find(findings_, FindingKind::stale, where + ": " + status.message());
    }

    int64_t now_;
    const CheckHooks& hooks_;
    Findings& findings_;
    std::map<std::tuple<std::string, std::string, std::string>, Record> records_;
};

}  // namespace

const char* name(FindingKind kind) {
    switch (kind) {
        case FindingKind::damage: return "damage";
        case FindingKind::stale: return "stale";
        case FindingKind::impossible: return "impossible";
        case FindingKind::disagreement: return "disagreement";
    }
    return "unknown finding";
}

Result<std::vector<Finding>> check_database(Store& store, int64_t now, const CheckHooks& hooks) {
    Findings findings;
    sqlite::Connection& connection = store.state().connection;
    TILEWRIGHT_RETURN_IF_ERROR(check_bytes(connection, findings));
    // Rows of a damaged file say nothing.
    if (!findings.empty()) return findings;
    TILEWRIGHT_RETURN_IF_ERROR(check_problems(connection, findings));
    TILEWRIGHT_RETURN_IF_ERROR(check_configs(connection, findings));
    RowChecks checks(now, hooks, findings);
    TILEWRIGHT_RETURN_IF_ERROR(store.for_each([&](const MeasurementRow& row) { return checks.add(row); }));
    checks.finish();
    return findings;
}

}  // namespace tilewright
