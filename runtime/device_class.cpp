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

}  // namespace

DeviceClass device_class(const DeviceInfo& info) { return {info.arch.backend, info.arch.name, family_name(info.arch.family), info.name, info.arch.units}; }

LookupHooks lookup_hooks(const Arch& arch) {
    LookupHooks hooks;
    hooks.check = [arch](const Problem& problem, const DeviceClass&, const Config& config, const LookupLimits&) {
        return check(search_space(problem, arch), config);
    };
    hooks.suggest = [arch](const Problem& problem, const DeviceClass&, const LookupLimits&) {
        Suggestion suggestion{default_config(problem, arch), Provenance::heuristic, 0};
        if (Result<Prediction> prediction = predict(dense_spec(problem, suggestion.config), arch); prediction.ok())
            suggestion.provenance = Provenance::predicted, suggestion.predicted_us = prediction->time_us;
        return suggestion;
    };
    return hooks;
}

}  // namespace tilewright
