// Measurements as JSON lines: the format of exports, of db/defaults/ and of imports.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "db/store.h"

namespace tilewright {

// One object on one line, without the newline: {"problem": text, "device": {...}, "toolchain": {...}, "config": {...},
// "outcome": name, "median_us": ..., ...}. What is unknown is left out.
std::string to_json_line(const MeasurementRow& row);

// invalid_argument names what is wrong: not JSON, an unknown or missing field, a value of the wrong type or out of range.
Result<MeasurementRow> parse_json_line(std::string_view line);

}  // namespace tilewright
