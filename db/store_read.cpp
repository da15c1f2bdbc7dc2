// Queries: what was tried, what won, what was missed, and what a file holds.
#include <filesystem>

#include "db/rows.h"
#include "db/schema.h"
#include "db/store_state.h"

namespace tilewright {
namespace {

Status for_each_row(sqlite::Statement& rows, const std::function<Status(const MeasurementRow&)>& take, int64_t* unreadable) {
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, rows.step());
        if (!more) return {};
        Result<MeasurementRow> row = rows::read_row(rows);
        if (!row.ok()) {
            if (unreadable) ++*unreadable;
            continue;
        }
        if (Status status = take(*row); !status.ok()) {
            rows.reset();
            return status;
        }
    }
}

}  // namespace

Result<std::vector<Measurement>> Store::measurements(const MeasurementKey& key) {
    TILEWRIGHT_ASSIGN_OR_RETURN(
        sqlite::Statement* const rows,
        state_->connection.prepare("SELECT m.id, c.json, m.outcome, m.median_us, m.p20_us, m.p80_us, m.samples, m.error, m.clock_mhz,"
                                   " m.memory_clock_mhz, m.temperature_c, m.energy_j, m.exclusive, m.race, m.place, m.driver, m.host, m.measured_at, m.note"
                                   " FROM measurement m JOIN config c ON c.id = m.config"
                                   " WHERE m.problem = ? AND m.device = ? AND m.toolchain = ? ORDER BY m.id"));
    rows->bind(key.problem).bind(key.device).bind(key.toolchain);
    std::vector<Measurement> found;
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, rows->step());
        if (!more) return found;
        Result<Measurement> measurement = rows::read_measurement(*rows, 0);
        // A config of another build's making cannot be proposed again by this one: nothing is lost by leaving it out.
        if (measurement.ok()) found.push_back(*std::move(measurement));
    }
}

Result<Measurement> Store::best(const Problem& problem, const DeviceClass& device) {
    const std::string query = std::string(rows::select_rows) + "WHERE m.id = (SELECT b.measurement FROM best b WHERE b.problem ="
                              " (SELECT id FROM problem WHERE text = ?) AND b.device = (SELECT id FROM device WHERE backend = ? AND"
                              " arch = ? AND family = ? AND name = ? AND units = ?))";
    static const std::string kept = query;
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const find, state_->connection.prepare(kept.c_str()));
    const std::string text = to_text(problem);
    find->bind(text).bind(device.backend).bind(device.arch).bind(device.family).bind(device.name).bind(int64_t{device.units});
    TILEWRIGHT_ASSIGN_OR_RETURN(const bool row, find->step());
    if (!row) return Status(StatusCode::not_found, state_->connection.path() + " holds no correct measurement of " + text + " on " + device.name);
    Result<Measurement> measurement = rows::read_measurement(*find, rows::first_measurement_column);
    find->reset();
    return measurement;
}

Status Store::for_each_best(const std::function<Status(const MeasurementRow&)>& row, int64_t* unreadable) {
    static const std::string query = std::string(rows::select_rows) + "JOIN best b ON b.measurement = m.id";
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const rows, state_->connection.prepare(query.c_str()));
    return for_each_row(*rows, row, unreadable);
}

Status Store::for_each(const std::function<Status(const MeasurementRow&)>& row, int64_t* unreadable) {
    static const std::string query = std::string(rows::select_rows) + "ORDER BY m.id";
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const rows, state_->connection.prepare(query.c_str()));
    return for_each_row(*rows, row, unreadable);
}

Result<std::vector<Miss>> Store::misses() {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const rows,
                                state_->connection.prepare("SELECT s.problem, d.backend, d.arch, d.family, d.name, d.units, s.count,"
                                                           " s.last_asked_at FROM miss s JOIN device d ON d.id = s.device"
                                                           " ORDER BY s.count DESC, s.last_asked_at DESC"));
    std::vector<Miss> found;
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, rows->step());
        if (!more) return found;
        found.push_back({std::string(rows->text(0)),
                         {std::string(rows->text(1)), std::string(rows->text(2)), std::string(rows->text(3)), std::string(rows->text(4)),
                          static_cast<int>(rows->integer(5))},
                         rows->integer(6),
                         rows->integer(7)});
    }
}

Result<StoreInfo> Store::info() {
    sqlite::Connection& connection = state_->connection;
    StoreInfo info;
    info.path = connection.path();
    TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t schema, connection.integer("PRAGMA user_version"));
    info.schema = static_cast<int>(schema);
    TILEWRIGHT_ASSIGN_OR_RETURN(info.journal, connection.text("PRAGMA journal_mode"));
    info.writable = sqlite3_db_readonly(connection.handle(), "main") == 0;
    std::error_code error;
    info.bytes = static_cast<int64_t>(std::filesystem::file_size(info.path, error));
    if (error) return Status(StatusCode::io, info.path + " cannot be looked at: " + error.message());
    for (const auto& [sql, count] : {std::pair{"SELECT count(*) FROM device", &StoreInfo::devices},
                                     {"SELECT count(*) FROM toolchain", &StoreInfo::toolchains},
                                     {"SELECT count(*) FROM problem", &StoreInfo::problems},
                                     {"SELECT count(*) FROM config", &StoreInfo::configs},
                                     {"SELECT count(*) FROM measurement", &StoreInfo::measurements},
                                     {"SELECT count(*) FROM best", &StoreInfo::winners},
                                     {"SELECT count(*) FROM miss", &StoreInfo::misses},
                                     {"SELECT coalesce(max(measured_at), 0) FROM measurement", &StoreInfo::newest_at}}) {
        TILEWRIGHT_ASSIGN_OR_RETURN(info.*count, connection.integer(sql));
    }
    return info;
}

Result<int64_t> Store::change_counter() { return state_->connection.integer("PRAGMA data_version"); }

}  // namespace tilewright
