// The space in which a database's measurements were made.
#pragma once
#include <string>

#include "db/store.h"

namespace tilewright::cli {

// As a T1 document, as this build has the space of that problem and architecture. `problem` (canonical text) may be left out where the database holds one.
// not_found: no measurement of it; invalid_argument: several problems or devices; unsupported: an architecture that this build does not know, or, as the
// CPU's space depends on the processor, measurements of another processor's space.
Result<std::string> space_as_t1(Store& store, const std::string& problem);

}  // namespace tilewright::cli
