// Is a database sound, and do its rows make sense?
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "db/store.h"

namespace tilewright {

enum class FindingKind { damage, stale, impossible, disagreement };
const char* name(FindingKind kind);

struct Finding {
    FindingKind kind;
    std::string text;  // names the row
};

// What the database layer cannot judge by itself; both may be empty.
struct CheckHooks {
    // Ok if today's kernels take the config on that device.
    std::function<Status(const Problem&, const DeviceClass&, const Config&)> legal;
    // The time that no device of that class can be below, in microseconds; 0: not known.
    std::function<double(const Problem&, const DeviceClass&)> least_us;
};

// damage: SQLite's integrity and foreign keys; columns that do not say what the problem's text says; configs that are not
// canonical. stale: what `legal` refuses, and what this build does not know. impossible: times below `least_us`, or refused by
// Store::add, or from the future (after `now`). disagreement: a config that is correct in one row and wrong in another, or
// whose medians for one key differ by more than a quarter.
Result<std::vector<Finding>> check_database(Store& store, int64_t now, const CheckHooks& hooks = {});

}  // namespace tilewright
