// What a Store owns; shared by store_*.cpp.
#pragma once
#include "db/sqlite.h"
#include "db/store.h"

namespace tilewright {

struct Store::State {
    sqlite::Connection connection;
    std::string note;
};

}  // namespace tilewright
