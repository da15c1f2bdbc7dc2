// Databases to and from other formats.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "db/store.h"

namespace tilewright {

enum class ExportFormat { json, csv, t4 };
Result<ExportFormat> parse_export_format(std::string_view text);  // "json", "csv", "t4"

struct ExportOptions {
    ExportFormat format = ExportFormat::json;
    bool best_only = true;  // the winners; false: every measurement
    std::string problem = {};  // canonical text: of this problem alone; empty: of all
};
// The rows as text. json: a line for each row, as in db/defaults/. csv: a header and a line for each row, config fields as
// columns. t4: one document of the T4 results format; it has no place for problem and device, so the database must hold one
// problem on one device (invalid_argument otherwise).
Result<std::string> export_rows(Store& store, const ExportOptions& options);

struct ImportReport {
    int64_t rows = 0;                  // stored
    std::vector<std::string> refused;  // a sentence each: where and why
};
// What a format does not say itself.
struct ImportContext {
    Problem problem;                                                                 // t4
    DeviceClass device;                                                              // t4
    Toolchain toolchain;                                                             // t4, aotriton
    std::function<Status(const Problem&, const DeviceClass&, const Config&)> legal;  // every row must pass; empty: all do
};
// Stores every sound row in one transaction. A row that is not sound is refused and named, and the others are stored. All of
// it is data: nothing in an imported file is executed, and a file that is itself a database is read by its tables alone.
Result<ImportReport> import_json(std::string_view text, Store& into, const ImportContext& context);
Result<ImportReport> import_t4(std::string_view text, Store& into, const ImportContext& context);
Result<ImportReport> import_database(const std::string& path, Store& into, const ImportContext& context);
// AOTriton's shipped tuning tables as seeds for AMD archs: rows of outcome `imported`, without times.
Result<ImportReport> import_aotriton(const std::string& path, Store& into, const ImportContext& context);

}  // namespace tilewright
