// From measurements to the problem and architecture, and from these to the space.
#include "cli/db/space.h"

#include <algorithm>
#include <optional>

#include "backends/arch.h"
#include "tuner/tuning_space.h"

namespace tilewright::cli {
namespace {

bool is_member(const Space& space, const Config& config) {
    return std::ranges::all_of(space.fields, [&](const SpaceField& field) { return std::ranges::find(field.values, config.*field.member) != field.values.end(); });
}

}  // namespace

Result<std::string> space_as_t1(Store& store, const std::string& problem) {
    std::optional<MeasurementRow> first;
    std::vector<Config> configs;
    const auto take = [&](const MeasurementRow& row) -> Status {
        if (!problem.empty() && to_text(row.problem) != problem) return {};
        if (!first) first = row;
        if (row.problem != first->problem || row.device != first->device)
            return invalid_argument("several spaces: " + to_text(first->problem) + " on " + first->device.name + ", " + to_text(row.problem) + " on " + row.device.name +
                                    "; name the problem, and keep devices in files of their own");
        if (row.newest_toolchain && row.measurement.outcome != Outcome::imported) configs.push_back(row.measurement.config);
        return {};
    };
    TILEWRIGHT_RETURN_IF_ERROR(store.for_each(take));
    if (!first) return Status(StatusCode::not_found, "there is no measurement" + (problem.empty() ? "" : " of " + problem));
    const Arch* const arch = find_arch(first->device.arch);
    if (arch == nullptr) return Status(StatusCode::unsupported, "this build does not know the architecture " + first->device.arch);
    TILEWRIGHT_ASSIGN_OR_RETURN(const TuningSpace space, tuning_space(first->problem, *arch, {}));
    for (const Config& config : configs)
        if (!is_member(space.space, config))
            return Status(StatusCode::unsupported, "the space was another one than this build and machine have for " + to_text(first->problem) + " on " + arch->name +
                                                       ": it lacks " + to_json(config));
    return to_t1(space);
}

}  // namespace tilewright::cli
