// Tuning runs as one web page that needs nothing else: no network, no script.
#pragma once
#include <string>
#include <vector>

#include "tuner/work_list.h"

namespace tilewright {

// The whole page, which is well-formed XML too: one section a problem with its best configs, the course of the search, the time by each tunable, the
// model against what was measured, and what was rejected and why. Problems without a report say why.
std::string html_report(const std::vector<WorkResult>& results);

}  // namespace tilewright
