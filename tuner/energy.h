// Measuring the energy of a launch by a counter that moves in steps.
#pragma once
#include <functional>

#include "tuner/measure.h"

namespace tilewright {

struct EnergyOptions {
    double seconds = 0.3;    // of launches between two readings, at least
    double patience = 2;     // seconds for which the counter may stand still
    double batch_us = 2000;  // of launches between two looks at the counter
};
// Joules of one launch. `joules`: what the device has taken since some moment; negative: not known. Such counters move every some tens of milliseconds: launches go
// on without pause from one of its steps to another, so that neither end is cut. Errors: the launches'; unavailable: the counter is not known or stands still.
Result<double> measure_energy(const Sampler& launches, const std::function<double()>& joules, const EnergyOptions& options = {});

}  // namespace tilewright
