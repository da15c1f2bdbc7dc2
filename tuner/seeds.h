// Configs worth trying first: what the model would take, and winners of like problems in the database.
#pragma once
#include <vector>

#include "backends/backend.h"
#include "db/store.h"
#include "tilewright/config.h"

namespace tilewright {

// The model's untuned choice, then up to `limit` winners of the same operation and head dimensions, of the database and those that are built in, the most alike first: same
// device class before others, near sizes before far ones. Some may not be legal for this problem.
Result<std::vector<Config>> seed_configs(const Problem& problem, const DeviceInfo& device, Store& store, size_t limit);

// The toolchain that measurements of this build on this backend belong to. The backend's error if there is no compiler.
Result<Toolchain> toolchain_of(Backend& backend);

}  // namespace tilewright
