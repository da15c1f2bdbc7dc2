// Judging rows by the model's constraints and rooflines.
#include "cli/db/hooks.h"

#include "backends/arch.h"
#include "model/model.h"
#include "model/space.h"

namespace tilewright::cli {

CheckHooks check_hooks() {
    CheckHooks hooks;
    hooks.legal = [](const Problem& problem, const DeviceClass& device, const Config& config) {
        const Arch* const arch = find_arch(device.arch);
        return arch ? check(search_space(problem, *arch), config) : Status();
    };
    hooks.least_us = [](const Problem& problem, const DeviceClass& device) {
        const Arch* const known = find_arch(device.arch);
        if (!known) return 0.0;
        Arch arch = *known;
        arch.units = device.units > 0 ? device.units : arch.units;
        return roofline_us(problem, arch);
    };
    return hooks;
}

}  // namespace tilewright::cli
