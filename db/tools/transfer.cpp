// Export to JSON lines and CSV; import of JSON lines and of databases of our own.
#include "db/tools/transfer.h"

#include <cstdio>

#include "db/json_rows.h"
#include "db/tools/t4.h"

namespace tilewright {
namespace {

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == text.npos) return text;
    std::string made = "\"";
    for (const char c : text) made += c == '"' ? std::string("\"\"") : std::string(1, c);
    return made + '"';
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

std::string csv_header() {
    std::string line = "problem,backend,arch,device,units,compiler,flags,kernel_source,outcome,median_us,p20_us,p80_us,samples,error,clock_mhz,"
                       "memory_clock_mhz,temperature_c,energy_j,exclusive,race,place,driver,host,measured_at,note";
    for (const ConfigField& field : config_fields()) line.append(",").append(field.name);
    return line + '\n';
}

std::string csv_line(const MeasurementRow& row) {
    const Measurement& m = row.measurement;
    std::string line;
    for (const std::string& part :
         {to_text(row.problem), row.device.backend, row.device.arch, row.device.name, std::to_string(row.device.units), row.toolchain.compiler,
          row.toolchain.flags, row.toolchain.kernel_source, std::string(name(m.outcome)), number(m.median_us), number(m.p20_us), number(m.p80_us),
          std::to_string(m.samples), number(m.error), number(m.clock_mhz), number(m.memory_clock_mhz), number(m.temperature_c), number(m.energy_j),
          std::to_string(m.exclusive), std::to_string(m.race), std::to_string(m.place), m.driver, m.host, std::to_string(m.measured_at), m.note}) {
        line += (line.empty() ? "" : ",") + quoted(part);
    }
    for (const ConfigField& field : config_fields()) line += ',' + std::to_string(m.config.*field.member);
    return line + '\n';
}

// Stores the sound ones among `rows`, each named by what stands in `refused` if it is not.
Result<ImportReport> store_sound(std::vector<MeasurementRow> rows, ImportReport report, Store& into, const ImportContext& context) {
    std::vector<MeasurementRow> sound;
    for (MeasurementRow& row : rows) {
        const Status status = context.legal ? context.legal(row.problem, row.device, row.measurement.config) : Status();
        if (status.ok()) sound.push_back(std::move(row));
        else report.refused.push_back(to_text(row.problem) + " on " + row.device.name + ", " + to_json(row.measurement.config) + ": " + status.message());
    }
    TILEWRIGHT_RETURN_IF_ERROR(into.add_all(sound));
    report.rows = static_cast<int64_t>(sound.size());
    return report;
}

}  // namespace

Result<ExportFormat> parse_export_format(std::string_view text) {
    if (text == "json") return ExportFormat::json;
    if (text == "csv") return ExportFormat::csv;
    if (text == "t4") return ExportFormat::t4;
    return invalid_argument(std::string(text.substr(0, 40)) + " is no export format: json, csv, t4");
}

Result<std::string> export_rows(Store& store, const ExportOptions& options) {
    std::vector<MeasurementRow> rows;
    const auto collect = [&](const MeasurementRow& row) {
        if (options.problem.empty() || to_text(row.problem) == options.problem) rows.push_back(row);
        return Status();
    };
    TILEWRIGHT_RETURN_IF_ERROR(options.best_only ? store.for_each_best(collect) : store.for_each(collect));
    if (options.format == ExportFormat::t4) return to_t4(rows);
    std::string text = options.format == ExportFormat::csv ? csv_header() : "";
    for (const MeasurementRow& row : rows) text += options.format == ExportFormat::csv ? csv_line(row) : to_json_line(row) + '\n';
    return text;
}

Result<ImportReport> import_json(std::string_view text, Store& into, const ImportContext& context) {
    ImportReport report;
    std::vector<MeasurementRow> rows;
    int64_t line_number = 0;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        ++line_number;
        if (line.find_first_not_of(" \t\r") == line.npos) continue;
        Result<MeasurementRow> row = parse_json_line(line);
        if (row.ok()) rows.push_back(*std::move(row));
        else report.refused.push_back("line " + std::to_string(line_number) + ": " + row.status().message());
    }
    return store_sound(std::move(rows), std::move(report), into, context);
}

Result<ImportReport> import_t4(std::string_view text, Store& into, const ImportContext& context) {
    ImportReport report;
    TILEWRIGHT_ASSIGN_OR_RETURN(std::vector<MeasurementRow> rows, parse_t4(text, context, report.refused));
    return store_sound(std::move(rows), std::move(report), into, context);
}

Result<ImportReport> import_database(const std::string& path, Store& into, const ImportContext& context) {
    // Opening has seen to it that the file holds our tables and nothing that acts.
    TILEWRIGHT_ASSIGN_OR_RETURN(Store from, Store::open(path, StoreMode::read));
    ImportReport report;
    std::vector<MeasurementRow> rows;
    int64_t unreadable = 0;
    TILEWRIGHT_RETURN_IF_ERROR(from.for_each(
        [&](const MeasurementRow& row) {
            const std::string where = "measurement " + std::to_string(row.measurement.id) + ": ";
            if (Status status = check_measurement(row.measurement); !status.ok()) report.refused.push_back(where + status.message());
            else rows.push_back(row);
            return Status();
        },
        &unreadable));
    if (unreadable > 0) report.refused.push_back(std::to_string(unreadable) + " measurements of problems or configs that this build does not know");
    return store_sound(std::move(rows), std::move(report), into, context);
}

Result<ImportReport> import_aotriton(const std::string& path, Store& into, const ImportContext& context) {
    ImportReport report;
    TILEWRIGHT_ASSIGN_OR_RETURN(std::vector<MeasurementRow> rows, read_aotriton(path, context, report.refused));
    return store_sound(std::move(rows), std::move(report), into, context);
}

}  // namespace tilewright
