// SQLite's handles and result codes, owned and named.
#include "db/sqlite.h"

#include <utility>

namespace tilewright::sqlite {

Status status_of(int code, const std::string& path, const char* detail) {
    const std::string because = detail ? std::string(" (") + detail + ")" : std::string();
    switch (code & 0xff) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED: return {StatusCode::unavailable, path + " is locked by another process for longer than we wait" + because};
        case SQLITE_READONLY: return {StatusCode::unavailable, path + " cannot be written: it is read-only" + because};
        case SQLITE_PERM:
        case SQLITE_AUTH: return {StatusCode::unavailable, path + " may not be accessed: no permission" + because};
        case SQLITE_CANTOPEN: return {StatusCode::unavailable, path + " cannot be opened" + because};
        case SQLITE_FULL: return {StatusCode::io, path + " cannot grow: the disk is full; nothing was stored" + because};
        case SQLITE_NOTADB: return invalid_argument(path + " is not an SQLite database; it is left as it is");
        case SQLITE_CORRUPT: return {StatusCode::io, path + " is corrupt" + because};
        case SQLITE_IOERR: return {StatusCode::io, path + " could not be read or written" + because};
        case SQLITE_NOMEM: return {StatusCode::unavailable, path + ": out of memory"};
        case SQLITE_CONSTRAINT: return {StatusCode::invalid_argument, path + " does not take this row" + because};
        default: return {StatusCode::io, path + ": SQLite code " + std::to_string(code) + because};
    }
}

Statement& Statement::bind(int64_t value) {
    if (const int code = sqlite3_bind_int64(statement_, ++bound_, value); code != SQLITE_OK) error_ = code;
    return *this;
}

Statement& Statement::bind(double value) {
    if (const int code = sqlite3_bind_double(statement_, ++bound_, value); code != SQLITE_OK) error_ = code;
    return *this;
}

Statement& Statement::bind(std::string_view value) {
    // A null data pointer would bind NULL, not the empty text.
    const char* data = value.data() ? value.data() : "";
    const int code = sqlite3_bind_text64(statement_, ++bound_, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    if (code != SQLITE_OK) error_ = code;
    return *this;
}

Statement& Statement::bind_bytes(std::string_view value) {
    const char* data = value.data() ? value.data() : "";
    const int code = sqlite3_bind_blob64(statement_, ++bound_, data, value.size(), SQLITE_TRANSIENT);
    if (code != SQLITE_OK) error_ = code;
    return *this;
}

Result<bool> Statement::step() {
    const int code = error_ != SQLITE_OK ? error_ : sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) {
        reset();
        return false;
    }
    sqlite3* handle = sqlite3_db_handle(statement_);
    Status status = status_of(sqlite3_extended_errcode(handle), *path_, sqlite3_errmsg(handle));
    if (error_ != SQLITE_OK) status = status_of(error_, *path_, sqlite3_errstr(error_));
    reset();
    return status;
}

Status Statement::run() {
    TILEWRIGHT_ASSIGN_OR_RETURN(const bool row, step());
    if (row) reset();
    return {};
}

Result<int64_t> Statement::run_integer() {
    TILEWRIGHT_ASSIGN_OR_RETURN(const bool row, step());
    if (!row) return Status(StatusCode::not_found, *path_ + " holds no such row");
    const int64_t value = integer(0);
    reset();
    return value;
}

void Statement::reset() {
    // Reset repeats the code of the last step, which step() has reported.
    (void)sqlite3_reset(statement_);
    bound_ = 0;
    error_ = SQLITE_OK;
}

std::string_view Statement::text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return data ? std::string_view(data, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : std::string_view();
}

std::string_view Statement::bytes(int column) const {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return data ? std::string_view(data, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : std::string_view();
}

Result<Connection> Connection::open(const std::string& file, const std::string& path, int flags, int busy_ms) {
    Connection connection;
    connection.path_ = std::make_unique<std::string>(path);
    const int code = sqlite3_open_v2(file.c_str(), &connection.handle_, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
    if (code != SQLITE_OK) return status_of(code, path, connection.handle_ ? sqlite3_errmsg(connection.handle_) : nullptr);
    if (const int set = sqlite3_busy_timeout(connection.handle_, busy_ms); set != SQLITE_OK) return status_of(set, path, nullptr);
    return connection;
}

Connection::Connection(Connection&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)), statements_(std::move(other.statements_)) {}

Connection& Connection::operator=(Connection&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(path_, other.path_);
    std::swap(statements_, other.statements_);
    return *this;
}

Connection::~Connection() {
    statements_.clear();
    // With every statement finalized this cannot fail.
    if (handle_) (void)sqlite3_close(handle_);
}

Status Connection::execute(const char* sql) {
    const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? Status() : status_of(code, *path_, sqlite3_errmsg(handle_));
}

Result<Statement*> Connection::prepare(const char* sql) {
    std::unique_ptr<Statement>& kept = statements_[sql];
    if (!kept) {
        sqlite3_stmt* statement = nullptr;
        const int code = sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
        if (code != SQLITE_OK) return status_of(code, *path_, sqlite3_errmsg(handle_));
        kept = std::make_unique<Statement>(statement, path_.get());
    }
    kept->reset();
    return kept.get();
}

Result<int64_t> Connection::integer(const char* sql) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Statement* const statement, prepare(sql));
    return statement->run_integer();
}

Result<std::string> Connection::text(const char* sql) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Statement* const statement, prepare(sql));
    TILEWRIGHT_ASSIGN_OR_RETURN(const bool row, statement->step());
    std::string text(row ? statement->text(0) : std::string_view());
    if (row) statement->reset();
    return text;
}

Result<std::unique_ptr<Statement>> Connection::prepare_once(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement, nullptr);
    if (code != SQLITE_OK) return status_of(code, *path_, sqlite3_errmsg(handle_));
    return std::make_unique<Statement>(statement, path_.get());
}

std::string_view RowValues::text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_value_text(values_[column]));
    return data ? std::string_view(data, static_cast<size_t>(sqlite3_value_bytes(values_[column]))) : std::string_view();
}

// The rows are arguments of a function of ours, which is called while SQLite scans and lets no row through: half of the time goes
// where every row is stepped to and every column asked for by a call of its own.
Status Connection::for_each_row(const Scan& scan, const std::function<void(const RowValues&)>& row) {
    using Row = std::function<void(const RowValues&)>;
    const auto take = [](sqlite3_context* context, int, sqlite3_value** values) { (*static_cast<const Row*>(sqlite3_user_data(context)))(RowValues(values)); };
    void* const user = const_cast<Row*>(&row);
    int code = sqlite3_create_function(handle_, "tilewright_take_row", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, user, take, nullptr, nullptr);
    if (code != SQLITE_OK) return status_of(code, *path_, sqlite3_errmsg(handle_));
    const std::string sql = std::string("SELECT 1 FROM ") + scan.from + " WHERE " + scan.where + " AND tilewright_take_row(" + scan.columns + ") ORDER BY " + scan.order;
    sqlite3_stmt* statement = nullptr;
    code = sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement, nullptr);
    if (code != SQLITE_OK) return status_of(code, *path_, sqlite3_errmsg(handle_));
    Statement rows(statement, path_.get());
    TILEWRIGHT_RETURN_IF_ERROR(rows.step().status());
    if (sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_SORT, 0) > 0) return {StatusCode::io, *path_ + " cannot be scanned in the order of " + scan.order};
    return {};
}

Status harden(Connection& connection) {
    for (const auto& [option, value] : {std::pair{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                        {SQLITE_DBCONFIG_DEFENSIVE, 1}, {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}}) {
        const int code = sqlite3_db_config(connection.handle(), option, value, nullptr);
        if (code != SQLITE_OK) return status_of(code, connection.path(), "sqlite3_db_config");
    }
    return {};
}

Result<Transaction> Transaction::begin(Connection& connection) {
    TILEWRIGHT_RETURN_IF_ERROR(connection.execute("BEGIN IMMEDIATE"));
    return Transaction(&connection);
}

Transaction::~Transaction() {
    // A failed COMMIT may have rolled back already; then there is nothing left to undo.
    if (connection_ && !sqlite3_get_autocommit(connection_->handle())) (void)connection_->execute("ROLLBACK");
}

Status Transaction::commit() {
    TILEWRIGHT_RETURN_IF_ERROR(connection_->execute("COMMIT"));
    connection_ = nullptr;
    return {};
}

}  // namespace tilewright::sqlite
