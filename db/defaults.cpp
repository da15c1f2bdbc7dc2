// Parsing the shipped winners.
#include "db/defaults.h"

#include "db/embedded.h"
#include "db/json_rows.h"

namespace tilewright {
namespace {

std::vector<MeasurementRow> parse_all() {
    std::vector<MeasurementRow> rows;
    for (const EmbeddedText* file = embedded_defaults; file->name; ++file) {
        std::string_view rest = file->text;
        while (!rest.empty()) {
            const size_t end = std::min(rest.find('\n'), rest.size());
            const std::string_view line = rest.substr(0, end);
            rest.remove_prefix(std::min(end + 1, rest.size()));
            if (line.empty()) continue;
            if (Result<MeasurementRow> row = parse_json_line(line); row.ok()) rows.push_back(*std::move(row));
        }
    }
    return rows;
}

}  // namespace

const std::vector<MeasurementRow>& default_rows() {
    static const std::vector<MeasurementRow> rows = parse_all();
    return rows;
}

}  // namespace tilewright
