// Reads a database file's correct measurements for the index.
#pragma once
#include "db/lookup/index.h"
#include "db/store.h"

namespace tilewright::lookup {

// One read transaction over the file; the same winners as its view `best`. Problems that are not valid and configs that this
// build does not know are counted and left out.
Result<Rows> load_rows(Store& store);

// The same from rows in memory, in any order.
Rows rows_of(const std::vector<MeasurementRow>& rows);

}  // namespace tilewright::lookup
