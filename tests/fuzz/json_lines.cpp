// Fuzz target: measurements as JSON lines. What is taken comes back equal from a line of our own.
#include "db/json_rows.h"
#include "fuzz/fuzz.h"

using namespace tilewright;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const Result<MeasurementRow> row = parse_json_line({reinterpret_cast<const char*>(data), size});
    if (!row.ok()) return 0;
    FUZZ_REQUIRE(validate(row->problem).ok() && check_measurement(row->measurement).ok());
    const std::string line = to_json_line(*row);
    FUZZ_REQUIRE(line.find('\n') == line.npos);
    const Result<MeasurementRow> again = parse_json_line(line);
    FUZZ_REQUIRE(again.ok() && to_json_line(*again) == line);
    return 0;
}
