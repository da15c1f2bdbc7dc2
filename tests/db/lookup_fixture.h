// Lookups in a database of one file.
#pragma once
#include <utility>

#include "db/fixtures.h"
#include "tilewright/tuning.h"

namespace tilewright::testing {

class LookupTest : public StoreTest {
protected:
    // A database of t.db alone.
    DatabaseOptions options() const {
        DatabaseOptions made;
        made.user_path = path();
        made.use_system = false;
        made.use_defaults = false;
        return made;
    }

    LookupResult ask(const std::string& text, const DeviceClass& on = device()) { return ask(options(), text, on); }

    static LookupResult ask(DatabaseOptions with, const std::string& text, const DeviceClass& on = device(), const LookupLimits& limits = {}) {
        with.log_misses = false;
        TuningDatabase database = TuningDatabase::open(std::move(with));
        LookupResult result = database.lookup(problem(text), database.device(on), limits);
        result.problem = result.device = result.database = {};  // they end with the database
        return result;
    }

    static Suggestion suggest_32(const Problem&, const DeviceClass&, const LookupLimits&) { return {config(32), Provenance::predicted, 77}; }
};

}  // namespace tilewright::testing
