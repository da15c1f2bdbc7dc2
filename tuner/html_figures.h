// The figures of a tuning report's page. The report has a best.
#pragma once
#include <string>

#include "tuner/tune.h"

namespace tilewright {

// How the best so far fell from trial to trial, and the model's times against those that were measured.
std::string search_figures(const TuneReport& report);
// One figure for each tunable that differs among the correct trials: their times by its value.
std::string tunable_figures(const TuneReport& report);

}  // namespace tilewright
