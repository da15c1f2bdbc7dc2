// Opening a database file: which journal, which version, and what to do with a file that is not as it should be.
#include <filesystem>

#include "db/file_system.h"
#include "db/schema.h"
#include "db/store_state.h"

namespace tilewright {
namespace {

// How long a writer waits for others' transactions. Sixteen tuners that store at once wait a second or two.
constexpr int write_wait_ms = 30000;
// How long opening for reading waits: a framework starts meanwhile.
constexpr int read_wait_ms = 2000;

// WAL lets readers go on while a tuner writes, but needs memory shared by all of the file's users: local disks only.
Status choose_journal(sqlite::Connection& connection, std::string& note) {
    const bool network = is_on_network(connection.path());
    Result<std::string> mode = connection.text(network ? "PRAGMA journal_mode = DELETE" : "PRAGMA journal_mode = WAL");
    // Another process that has the file open can keep it from changing its mode. Both modes are sound on a local disk.
    if (!mode.ok() && mode.status().code() != StatusCode::unavailable) return mode.status();
    if (network) note = "on a network file system: rollback journal instead of WAL";
    if (network && (!mode.ok() || *mode == "wal")) {
        return {StatusCode::unavailable, connection.path() + " is on a network file system and in WAL mode, and another process holds it open: "
                                             "close that, so that it can be changed to a rollback journal"};
    }
    return connection.execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
}

std::string immutable_uri(const std::string& path) {
    std::string uri = "file:";
    for (const char c : path) {
        const bool special = c == '?' || c == '#' || c == '%';
        uri += special ? std::string("%") + "0123456789abcdef"[c >> 4] + "0123456789abcdef"[c & 15] : std::string(1, c);
    }
    return uri + "?immutable=1";
}

bool has_bytes(const std::string& path) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    return !error && size > 0;
}

Result<sqlite::Connection> open_readable(const std::string& path, int wait_ms, std::string& note) {
    Result<sqlite::Connection> connection = sqlite::Connection::open(path, path, SQLITE_OPEN_READONLY, wait_ms);
    Status status = connection.status();
    if (connection.ok()) {
        status = connection->integer("SELECT count(*) FROM sqlite_schema").status();
        if (status.ok()) return connection;
    }
    // A file in WAL mode on read-only media cannot have its shared memory made. With no writer possible and nothing
    // waiting in a journal, the file can be read as one that does not change.
    if (status.code() != StatusCode::unavailable || can_write(path + "-shm") || has_bytes(path + "-wal") || has_bytes(path + "-journal")) {
        return status;
    }
    note = "read-only media: read as a file that does not change";
    return sqlite::Connection::open(immutable_uri(path), path, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, wait_ms);
}

// A file of an older version that may not be written is brought up to date in memory.
Result<sqlite::Connection> copy_to_memory(sqlite::Connection& from) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Connection copy,
                                sqlite::Connection::open(":memory:", from.path(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, 0));
    sqlite3_backup* const backup = sqlite3_backup_init(copy.handle(), "main", from.handle(), "main");
    if (!backup) return sqlite::status_of(sqlite3_extended_errcode(copy.handle()), from.path(), "copy to memory");
    const int step = sqlite3_backup_step(backup, -1);
    const int finish = sqlite3_backup_finish(backup);
    if (step != SQLITE_DONE) return sqlite::status_of(step, from.path(), "copy to memory");
    if (finish != SQLITE_OK) return sqlite::status_of(finish, from.path(), "copy to memory");
    TILEWRIGHT_RETURN_IF_ERROR(sqlite::harden(copy));
    TILEWRIGHT_RETURN_IF_ERROR(migrate(copy));
    return copy;
}

Result<sqlite::Connection> open_for_reading(const std::string& path, int wait_ms, std::string& note) {
    TILEWRIGHT_RETURN_IF_ERROR(check_database_file(path));
    if (!has_bytes(path)) return invalid_argument(path + " is empty");
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Connection connection, open_readable(path, wait_ms, note));
    TILEWRIGHT_RETURN_IF_ERROR(sqlite::harden(connection));
    TILEWRIGHT_ASSIGN_OR_RETURN(const SchemaState schema, inspect_schema(connection));
    if (schema == SchemaState::fresh) return invalid_argument(path + " holds no Tilewright tables");
    if (schema == SchemaState::current) return connection;
    note = "an older schema: brought up to date in memory only";
    return copy_to_memory(connection);
}

Result<sqlite::Connection> open_for_writing(const std::string& path, bool create, int wait_ms, std::string& note) {
    const Status file = check_database_file(path);
    if (!file.ok() && !(create && file.code() == StatusCode::not_found)) return file;
    if (create) TILEWRIGHT_RETURN_IF_ERROR(make_parent_folder(path));
    const int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Connection connection, sqlite::Connection::open(path, path, flags, wait_ms));
    if (sqlite3_db_readonly(connection.handle(), "main") == 1) {
        return Status(StatusCode::unavailable, path + " cannot be written: no permission or read-only media");
    }
    TILEWRIGHT_RETURN_IF_ERROR(sqlite::harden(connection));
    // Before anything is changed: a foreign or newer file stays as it is.
    TILEWRIGHT_ASSIGN_OR_RETURN(const SchemaState schema, inspect_schema(connection));
    TILEWRIGHT_RETURN_IF_ERROR(choose_journal(connection, note));
    if (schema != SchemaState::current) TILEWRIGHT_RETURN_IF_ERROR(migrate(connection));
    return connection;
}

}  // namespace

Result<Store> Store::open(const std::string& path, StoreMode mode, int wait_ms) {
    std::string note;
    if (wait_ms < 0) wait_ms = mode == StoreMode::read ? read_wait_ms : write_wait_ms;
    Result<sqlite::Connection> connection =
        mode == StoreMode::read ? open_for_reading(path, wait_ms, note) : open_for_writing(path, mode == StoreMode::create, wait_ms, note);
    TILEWRIGHT_RETURN_IF_ERROR(connection.status());
    TILEWRIGHT_RETURN_IF_ERROR(check_schema(*connection));
    return Store(std::make_unique<State>(State{*std::move(connection), std::move(note)}));
}

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

const std::string& Store::note() const { return state_->note; }

}  // namespace tilewright
