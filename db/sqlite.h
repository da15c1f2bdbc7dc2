// A thin owner of SQLite's handles that turns every result code into a Status. Included by db/*.cpp only.
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tilewright/status.h"

namespace tilewright::sqlite {

// What went wrong with `path`, from SQLite's extended code: unavailable (locked, no permission, read-only), io otherwise.
Status status_of(int code, const std::string& path, const char* detail);

// A prepared statement. Bind from 1, read columns from 0. Binding errors are kept and returned by the next step().
class Statement {
public:
    Statement(sqlite3_stmt* statement, const std::string* path) : statement_(statement), path_(path) {}
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;
    ~Statement() { sqlite3_finalize(statement_); }

    Statement& bind(int64_t value);
    Statement& bind(double value);
    Statement& bind(std::string_view value);  // copied
    Statement& bind_bytes(std::string_view value);  // as a BLOB; copied
    // True: a row is there. False: done, and the statement is reset for the next use.
    Result<bool> step();
    // Runs a statement that returns no rows.
    Status run();
    // Runs a statement for its first row's first column; not_found without a row.
    Result<int64_t> run_integer();
    void reset();

    int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
    double real(int column) const { return sqlite3_column_double(statement_, column); }
    std::string_view text(int column) const;  // valid until the next step
    std::string_view bytes(int column) const;  // same

private:
    sqlite3_stmt* statement_;
    const std::string* path_;  // the connection's
    int bound_ = 0;
    int error_ = SQLITE_OK;
};

// SELECT columns FROM from WHERE where ORDER BY order, which must be the order of an index or the table.
struct Scan {
    const char* columns;
    const char* from;
    const char* where = "true";
    const char* order = "id";
};

// What one row of for_each_row() holds, read from 0.
class RowValues {
public:
    explicit RowValues(sqlite3_value** values) : values_(values) {}
    int64_t integer(int column) const { return sqlite3_value_int64(values_[column]); }
    double real(int column) const { return sqlite3_value_double(values_[column]); }
    std::string_view text(int column) const;  // valid during the call

private:
    sqlite3_value** values_;
};

class Connection {
public:
    // `flags` of sqlite3_open_v2; `file` may be a URI when SQLITE_OPEN_URI is among them. Messages name `path`.
    static Result<Connection> open(const std::string& file, const std::string& path, int flags, int busy_ms);
    Connection(Connection&& other) noexcept;
    Connection& operator=(Connection&& other) noexcept;
    ~Connection();

    // One or more statements without results.
    Status execute(const char* sql);
    // Prepared once, kept by the address of `sql` (a literal), given back reset. Owned by the connection.
    Result<Statement*> prepare(const char* sql);
    // For text made at run time; owned by the caller, must not outlive the connection.
    Result<std::unique_ptr<Statement>> prepare_once(const std::string& sql);
    // Calls `row` for every row of a long scan; nothing may use the connection meanwhile. io if an index does not give the order.
    Status for_each_row(const Scan& scan, const std::function<void(const RowValues&)>& row);
    // The first column of the first row.
    Result<int64_t> integer(const char* sql);
    Result<std::string> text(const char* sql);
    int64_t last_row() const { return sqlite3_last_insert_rowid(handle_); }
    sqlite3* handle() const { return handle_; }
    const std::string& path() const { return *path_; }

private:
    Connection() = default;
    sqlite3* handle_ = nullptr;
    std::unique_ptr<std::string> path_;  // at a fixed address: statements refer to it
    std::unordered_map<const char*, std::unique_ptr<Statement>> statements_;
};

// Nothing in a file may act by itself: triggers are off, functions with side effects are barred from the schema, and the
// schema cannot be edited as a table.
Status harden(Connection& connection);

// BEGIN IMMEDIATE ... COMMIT; rolls back unless committed.
class Transaction {
public:
    static Result<Transaction> begin(Connection& connection);
    Transaction(Transaction&& other) noexcept : connection_(other.connection_) { other.connection_ = nullptr; }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction();
    Status commit();

private:
    explicit Transaction(Connection* connection) : connection_(connection) {}
    Connection* connection_;
};

}  // namespace tilewright::sqlite
