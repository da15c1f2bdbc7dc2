// Winners that ship with the library, from the reviewable text in db/defaults/.
#pragma once
#include <vector>

#include "db/store.h"

namespace tilewright {

// Parsed once; lines that do not parse are left out (a test sees to it that there are none). Thread-safe.
const std::vector<MeasurementRow>& default_rows();

}  // namespace tilewright
