// Fuzz target: T4 documents. What is taken is sound, and comes back from a document of our own.
#include "db/tools/t4.h"
#include "fuzz/fuzz.h"

using namespace tilewright;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    ImportContext context;
    context.device = {"cpu", "cpu", "", "a device", 2};
    std::vector<std::string> refused;
    const Result<std::vector<MeasurementRow>> rows = parse_t4({reinterpret_cast<const char*>(data), size}, context, refused);
    if (!rows.ok()) return 0;
    for (const MeasurementRow& row : *rows) FUZZ_REQUIRE(check_measurement(row.measurement).ok());
    if (rows->empty()) return 0;
    const Result<std::string> text = to_t4(*rows);
    FUZZ_REQUIRE(text.ok());
    const Result<std::vector<MeasurementRow>> again = parse_t4(*text, context, refused);
    FUZZ_REQUIRE(again.ok() && again->size() == rows->size());
    for (size_t i = 0; i < rows->size(); ++i) FUZZ_REQUIRE((*again)[i].measurement.config == (*rows)[i].measurement.config);
    return 0;
}
