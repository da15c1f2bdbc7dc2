// Ties the databases' answers to today's kernels: re-validation and the model's own suggestion.
#include "runtime/device_class.h"

#include "model/model.h"
#include "model/space.h"

namespace tilewright {
namespace {

const char* family_name(Family family) {
    switch (family) {
        case Family::cpu:
            return "cpu";
        case Family::sm80:
            return "sm80";
        case Family::sm90:
            return "sm90";
        case Family::cdna:
            return "cdna";
        case Family::rdna3:
            return "rdna3";
        case Family::rdna4:
            return "rdna4";
    }
    return "";
}

// Is the config modest enough?
Status within(const Problem& problem, const Config& config, const Arch& arch, const LookupLimits& limits) {
    if (limits.max_workspace_bytes < 0) return {};
    TILEWRIGHT_ASSIGN_OR_RETURN(OperationPlan plan, plan_operation(problem, config, arch, dense_traits(problem)));
    if (plan.workspace_bytes <= limits.max_workspace_bytes) return {};
    return {StatusCode::unsupported, "the workspace takes " + std::to_string(plan.workspace_bytes) + " bytes; " + std::to_string(limits.max_workspace_bytes) + " are allowed"};
}

}  // namespace

DeviceClass device_class(const DeviceInfo& info) { return {info.arch.backend, info.arch.name, family_name(info.arch.family), info.name, info.arch.units}; }

LookupHooks lookup_hooks(const Arch& arch) {
    LookupHooks hooks;
    hooks.check = [arch](const Problem& problem, const DeviceClass&, const Config& config, const LookupLimits& limits) -> Status {
        TILEWRIGHT_RETURN_IF_ERROR(check(search_space(problem, arch), config));
        return within(problem, config, arch, limits);
    };
    hooks.suggest = [arch](const Problem& problem, const DeviceClass&, const LookupLimits& limits) {
        Suggestion suggestion{default_config(problem, arch), Provenance::heuristic, 0};
        if (!within(problem, suggestion.config, arch, limits).ok()) suggestion.config.dq = 0;  // the least workspace
        if (Result<Prediction> prediction = predict(problem, suggestion.config, arch); prediction.ok())
            suggestion.provenance = Provenance::predicted, suggestion.predicted_us = prediction->time_us;
        return suggestion;
    };
    return hooks;
}

}  // namespace tilewright
