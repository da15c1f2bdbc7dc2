// Formats of other tuners' results, to and from our rows. Used by transfer.cpp.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "db/store.h"
#include "db/tools/transfer.h"

namespace tilewright {

// A T4 results document of one problem on one device; times are in milliseconds there. Rows that were never run are left out.
// invalid_argument if there are several problems or devices.
Result<std::string> to_t4(const std::vector<MeasurementRow>& rows);
// The results as rows of the context's problem, device and toolchain; what is not sound is named in `refused`. invalid_argument
// if the text is no T4 document at all.
Result<std::vector<MeasurementRow>> parse_t4(std::string_view text, const ImportContext& context, std::vector<std::string>& refused);

// Rows of an AOTriton tuning database. Its tables do not say batch and heads: both are 1 here, and the note says so. Rows
// with dropout, 8-bit operands or a scaled P are none of ours and are counted in one sentence of `refused`.
Result<std::vector<MeasurementRow>> read_aotriton(const std::string& path, const ImportContext& context, std::vector<std::string>& refused);

}  // namespace tilewright
