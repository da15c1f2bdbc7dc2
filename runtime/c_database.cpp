// The C interface to tuning databases alone, without a device.
#include <limits>

#include "runtime/c_api.h"
#include "runtime/device_class.h"

using namespace tilewright;
using namespace tilewright::c_api;

struct tilewright_database {
    TuningDatabase database;
    int device;
};

namespace {

Status open(const tilewright_database_options* given, tilewright_database** database) {
    if (!database) return is_null("database");
    *database = nullptr;
    TILEWRIGHT_RETURN_IF_ERROR(check_struct("options", given));
    if (!given->arch) return is_null("options.arch");
    const Arch* const arch = find_arch(given->arch);
    if (!arch) return {StatusCode::not_found, "there is no arch called '" + std::string(given->arch) + "'"};
    if (given->units < 0) return invalid_argument("options.units is " + std::to_string(given->units) + "; it must not be negative");
    DeviceInfo info;
    info.arch = *arch;
    if (given->device) info.name = given->device;
    if (given->units > 0) info.arch.units = given->units;
    DatabaseOptions options;
    if (given->database) options.user_path = given->database;
    options.hooks = lookup_hooks(info.arch);
    TuningDatabase opened = TuningDatabase::open(std::move(options));
    const int device = opened.device(device_class(info));
    *database = new tilewright_database{std::move(opened), device};
    return {};
}

Result<LookupLimits> limits_of(const tilewright_limits* given) {
    LookupLimits limits;
    if (!given) return limits;
    TILEWRIGHT_RETURN_IF_ERROR(check_struct("limits", given));
    limits.deterministic = given->deterministic != 0;
    limits.max_workspace_bytes = given->max_workspace_bytes;
    if (given->max_error >= 0) limits.max_error = given->max_error;
    return limits;
}

Status lookup(tilewright_database* database, const tilewright_problem* given, const tilewright_limits* given_limits, tilewright_config* config) {
    if (!database) return is_null("database");
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    TILEWRIGHT_ASSIGN_OR_RETURN(LookupLimits limits, limits_of(given_limits));
    return fill(database->database.lookup(problem, database->device, limits), config);
}

}  // namespace

tilewright_status tilewright_database_open(const tilewright_database_options* options, tilewright_database** database) { return report(open(options, database)); }

void tilewright_database_close(tilewright_database* database) { delete database; }

tilewright_status tilewright_database_lookup(tilewright_database* database, const tilewright_problem* problem, const tilewright_limits* limits, tilewright_config* config) {
    return report(lookup(database, problem, limits, config));
}

tilewright_status tilewright_database_refresh(tilewright_database* database, int32_t* changed) {
    if (!database) return report(is_null("database"));
    const bool any = database->database.refresh();
    if (changed) *changed = any;
    return report({});
}
