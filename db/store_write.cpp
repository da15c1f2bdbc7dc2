// Inserting: devices, toolchains, problems, configs, measurements and misses.
#include <chrono>

#include "db/rows.h"
#include "db/store_state.h"

namespace tilewright {
namespace {

// How many misses a file remembers.
constexpr int64_t max_misses = 10000;

int64_t now_seconds() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The id that `select` finds after `bind`; inserts first if there is none. Both statements take the same bindings first.
template <class Bind, class BindRest>
Result<int64_t> find_or_insert(sqlite::Connection& connection, const char* select, const char* insert, const Bind& bind, const BindRest& bind_rest) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const find, connection.prepare(select));
    bind(*find);
    Result<int64_t> id = find->run_integer();
    if (id.ok() || id.status().code() != StatusCode::not_found) return id;
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const add, connection.prepare(insert));
    bind(*add);
    bind_rest(*add);
    TILEWRIGHT_RETURN_IF_ERROR(add->run());
    // Another process may have been first: the row is looked for, its id not assumed.
    bind(*find);
    return find->run_integer();
}

constexpr auto nothing_more = [](sqlite::Statement&) {};

Result<int64_t> put_config(sqlite::Connection& connection, const Config& config) {
    const std::string json = to_json(config);
    return find_or_insert(
        connection, "SELECT id FROM config WHERE json = ?", "INSERT INTO config(json, hash) VALUES(?, ?) ON CONFLICT DO NOTHING",
        [&](sqlite::Statement& s) { s.bind(json); }, [&](sqlite::Statement& s) { s.bind(rows::short_hash(json)); });
}

Result<int64_t> insert(sqlite::Connection& connection, const MeasurementKey& key, Measurement measurement) {
    TILEWRIGHT_RETURN_IF_ERROR(check_measurement(measurement));
    if (measurement.measured_at == 0) measurement.measured_at = now_seconds();
    TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t config, put_config(connection, measurement.config));
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const add, connection.prepare(rows::insert_measurement));
    add->bind(key.problem).bind(key.device).bind(key.toolchain).bind(config);
    rows::bind_measurement(*add, measurement);
    TILEWRIGHT_RETURN_IF_ERROR(add->run());
    return connection.last_row();
}

}  // namespace

Result<int64_t> Store::put_device(const DeviceClass& device) {
    return find_or_insert(
        state_->connection, "SELECT id FROM device WHERE backend = ? AND arch = ? AND family = ? AND name = ? AND units = ?",
        "INSERT INTO device(backend, arch, family, name, units) VALUES(?,?,?,?,?) ON CONFLICT DO NOTHING",
        [&](sqlite::Statement& s) {
            s.bind(device.backend).bind(device.arch).bind(device.family).bind(device.name).bind(int64_t{device.units});
        },
        nothing_more);
}

Result<int64_t> Store::put_toolchain(const Toolchain& toolchain) {
    return find_or_insert(
        state_->connection, "SELECT id FROM toolchain WHERE compiler = ? AND flags = ? AND kernel_source = ?",
        "INSERT INTO toolchain(compiler, flags, kernel_source) VALUES(?,?,?) ON CONFLICT DO NOTHING",
        [&](sqlite::Statement& s) { s.bind(toolchain.compiler).bind(toolchain.flags).bind(toolchain.kernel_source); }, nothing_more);
}

Result<int64_t> Store::put_problem(const Problem& problem) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    const std::string text = to_text(problem);
    return find_or_insert(
        state_->connection, "SELECT id FROM problem WHERE text = ?", rows::insert_problem,
        [&](sqlite::Statement& s) { s.bind(text); }, [&](sqlite::Statement& s) { rows::bind_problem(s, problem); });
}

Result<MeasurementKey> Store::put_key(const Problem& problem, const DeviceClass& device, const Toolchain& toolchain) {
    MeasurementKey key;
    TILEWRIGHT_ASSIGN_OR_RETURN(key.problem, put_problem(problem));
    TILEWRIGHT_ASSIGN_OR_RETURN(key.device, put_device(device));
    TILEWRIGHT_ASSIGN_OR_RETURN(key.toolchain, put_toolchain(toolchain));
    return key;
}

Result<int64_t> Store::add(const MeasurementKey& key, const Measurement& measurement) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::begin(state_->connection));
    TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t id, insert(state_->connection, key, measurement));
    TILEWRIGHT_RETURN_IF_ERROR(transaction.commit());
    return id;
}

Status Store::add_all(const std::vector<MeasurementRow>& rows) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::begin(state_->connection));
    for (const MeasurementRow& row : rows) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const MeasurementKey key, put_key(row.problem, row.device, row.toolchain));
        TILEWRIGHT_RETURN_IF_ERROR(insert(state_->connection, key, row.measurement).status());
    }
    return transaction.commit();
}

Status Store::add_misses(const std::vector<Miss>& misses) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::begin(state_->connection));
    for (const Miss& miss : misses) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t device, put_device(miss.device));
        TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const add,
                                    state_->connection.prepare("INSERT INTO miss(problem, device, count, last_asked_at) VALUES(?,?,?,?)"
                                                               " ON CONFLICT DO UPDATE SET count = count + excluded.count,"
                                                               " last_asked_at = max(last_asked_at, excluded.last_asked_at)"));
        add->bind(miss.problem).bind(device).bind(miss.count).bind(miss.last_asked_at ? miss.last_asked_at : now_seconds());
        TILEWRIGHT_RETURN_IF_ERROR(add->run());
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const forget,
                                state_->connection.prepare("DELETE FROM miss WHERE (problem, device) IN (SELECT problem, device FROM miss"
                                                           " ORDER BY last_asked_at DESC, count DESC LIMIT -1 OFFSET ?)"));
    forget->bind(max_misses);
    TILEWRIGHT_RETURN_IF_ERROR(forget->run());
    return transaction.commit();
}

Status Store::clear_miss(const std::string& problem, const DeviceClass& device) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const forget,
                                state_->connection.prepare("DELETE FROM miss WHERE problem = ? AND device IN (SELECT id FROM device WHERE"
                                                           " backend = ? AND arch = ? AND family = ? AND name = ? AND units = ?)"));
    forget->bind(problem).bind(device.backend).bind(device.arch).bind(device.family).bind(device.name).bind(int64_t{device.units});
    return forget->run();
}

Status Store::compact() {
    TILEWRIGHT_RETURN_IF_ERROR(state_->connection.execute("VACUUM"));
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::string mode, state_->connection.text("PRAGMA journal_mode = DELETE"));
    if (mode != "delete") return {StatusCode::unavailable, state_->connection.path() + " stays in journal mode " + mode + ": another process has it open"};
    return {};
}

}  // namespace tilewright
