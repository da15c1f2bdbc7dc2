// Predictions for the kernels of backward and decode: each resource at its rate, without the forward's finer points.
#pragma once
#include "model/model.h"

namespace tilewright {

// Completes a prediction whose resources and occupancy are known. Of a decode kernel, `config.units` must be those of the launch.
Prediction predict_by_rates(const KernelSpec& spec, const Arch& arch, Prediction prediction);

}  // namespace tilewright
