// Migrations: forward only, one transaction each, from text that never changes once released.
#include "db/schema.h"

#include <map>

#include "db/embedded.h"

namespace tilewright {
namespace {

using SchemaText = std::map<std::string, std::string>;  // name of table, index or view: the SQL that made it

Result<SchemaText> schema_text(sqlite::Connection& connection) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const objects,
                                connection.prepare("SELECT type || ' ' || name, sql FROM sqlite_schema "
                                                   "WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"));
    SchemaText text;
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool row, objects->step());
        if (!row) return text;
        text.emplace(objects->text(0), objects->text(1));
    }
}

// What the migrations make of an empty database.
Result<SchemaText> make_expected_schema() {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Connection memory,
                                sqlite::Connection::open(":memory:", "a database in memory", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, 0));
    TILEWRIGHT_RETURN_IF_ERROR(migrate(memory));
    return schema_text(memory);
}

}  // namespace

int64_t current_schema() {
    int64_t count = 0;
    while (embedded_migrations[count].name) ++count;
    return count;
}

namespace {

struct Marks {
    int64_t id = 0, version = 0, objects = 0;
};

// All of one moment: another process may be making the tables.
Result<Marks> read_marks(sqlite::Connection& connection) {
    TILEWRIGHT_RETURN_IF_ERROR(connection.execute("SAVEPOINT marks"));
    struct End {
        sqlite::Connection& connection;
        ~End() { (void)connection.execute("RELEASE marks"); }  // nothing was written
    } end{connection};
    Marks marks;
    TILEWRIGHT_ASSIGN_OR_RETURN(marks.id, connection.integer("PRAGMA application_id"));
    TILEWRIGHT_ASSIGN_OR_RETURN(marks.version, connection.integer("PRAGMA user_version"));
    TILEWRIGHT_ASSIGN_OR_RETURN(marks.objects, connection.integer("SELECT count(*) FROM sqlite_schema"));
    return marks;
}

}  // namespace

Result<SchemaState> inspect_schema(sqlite::Connection& connection) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const Marks marks, read_marks(connection));
    const auto [id, version, objects] = marks;
    if (id == 0 && version == 0 && objects == 0) return SchemaState::fresh;
    if (id != application_id) {
        return invalid_argument(connection.path() + " is an SQLite database of another program (application_id " + std::to_string(id) +
                                ", ours is " + std::to_string(application_id) + "); it is left as it is");
    }
    if (version < 0) return Status(StatusCode::io, connection.path() + " has schema version " + std::to_string(version) + ", which there never was");
    if (version > current_schema()) {
        return Status(StatusCode::unsupported, connection.path() + " has schema version " + std::to_string(version) +
                                                   ", this build knows up to " + std::to_string(current_schema()) +
                                                   ": use a newer Tilewright or another file");
    }
    return version == current_schema() ? SchemaState::current : SchemaState::older;
}

Status migrate(sqlite::Connection& connection) {
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::begin(connection));
        // Looked at inside the transaction: another process may have migrated since.
        TILEWRIGHT_ASSIGN_OR_RETURN(const SchemaState state, inspect_schema(connection));
        if (state == SchemaState::current) return transaction.commit();
        TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t version, connection.integer("PRAGMA user_version"));
        TILEWRIGHT_RETURN_IF_ERROR(connection.execute(embedded_migrations[version].text));
        const std::string marks = "PRAGMA application_id = " + std::to_string(application_id) +
                                  "; PRAGMA user_version = " + std::to_string(version + 1);
        TILEWRIGHT_RETURN_IF_ERROR(connection.execute(marks.c_str()));
        TILEWRIGHT_RETURN_IF_ERROR(transaction.commit());
    }
}

Status check_schema(sqlite::Connection& connection) {
    static const Result<SchemaText> expected = make_expected_schema();
    TILEWRIGHT_RETURN_IF_ERROR(expected.status());
    TILEWRIGHT_ASSIGN_OR_RETURN(const SchemaText found, schema_text(connection));
    for (const auto& [name, sql] : found) {
        const auto wanted = expected->find(name);
        if (wanted == expected->end()) return {StatusCode::io, connection.path() + " holds a " + name + " that is not ours; it is not used"};
        if (wanted->second != sql) return {StatusCode::io, connection.path() + " has another " + name + " than ours; it is not used"};
    }
    for (const auto& [name, sql] : *expected) {
        if (!found.contains(name)) return {StatusCode::io, connection.path() + " lacks the " + name + "; it is not used"};
    }
    return {};
}

}  // namespace tilewright
