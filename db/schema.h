// The schema of a database file: its version, its migrations and whether a file holds it and nothing else.
#pragma once
#include "db/sqlite.h"

namespace tilewright {

constexpr int64_t application_id = 0x54574442;  // "TWDB" in the file's header; frozen

// How many migrations there are: the version that this build reads and writes.
int64_t current_schema();

// What a file is by its application_id, user_version and tables.
enum class SchemaState { fresh, older, current };
// invalid_argument for another program's database, unsupported for a newer schema. Both sentences say what to do.
Result<SchemaState> inspect_schema(sqlite::Connection& connection);

// Brings a fresh or older file to the current version, each migration in one transaction; safe against other processes
// doing the same.
Status migrate(sqlite::Connection& connection);

// io unless the tables, indices and views are exactly those of the current version: no trigger, no view of somebody
// else's making, no changed column.
Status check_schema(sqlite::Connection& connection);

}  // namespace tilewright
