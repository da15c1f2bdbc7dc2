// Tables' columns to and from structs: one bind and one read a column, side by side in rows.cpp.
#pragma once
#include "db/sqlite.h"
#include "db/store.h"

namespace tilewright::rows {

// Comma-separated columns in the order that bind_* and read_* use, qualified where joins need it.
extern const char insert_problem[];
extern const char insert_measurement[];
// SELECT of every MeasurementRow column FROM measurement and what it refers to; append WHERE and ORDER BY. The last column
// is the id of the newest toolchain of the row's problem and device, or NULL.
extern const char select_rows[];
constexpr int problem_columns = 22, first_measurement_column = 30;
extern const char select_problems[];  // the columns that read_problem takes, then id and text

void bind_problem(sqlite::Statement& statement, const Problem& problem);          // after the text
void bind_measurement(sqlite::Statement& statement, const Measurement& measurement);  // after the four ids

// The first columns, problem_columns of them. invalid_argument if they make no valid problem.
Result<Problem> read_problem(const sqlite::Statement& statement);
// A row of select_rows. invalid_argument if its problem or config is not one that this build knows; the message names it.
Result<MeasurementRow> read_row(const sqlite::Statement& statement);
// A Measurement from the columns that follow `first`, in select_rows' order.
Result<Measurement> read_measurement(const sqlite::Statement& statement, int first);

// 16 hex digits of FNV-1a.
std::string short_hash(std::string_view text);

}  // namespace tilewright::rows
