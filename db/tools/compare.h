// The same problems on several devices: who is how fast, with which tile, and how well one device's winners serve another.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "db/store.h"

namespace tilewright {

// One device's winner for a problem.
struct ComparedWinner {
    Config config;
    double median_us = 0;
    double tflops = 0;         // useful_flops over the median
    double share_of_peak = 0;  // of the device's matrix rate, for the caller to fill in who knows it; 0: unknown
};

struct ComparedProblem {
    Problem problem;
    std::vector<std::optional<ComparedWinner>> winners;  // by device; absent: not measured there
};

// The winners of device `from` run on device `to`.
struct Portability {
    double fraction = 0;  // of `to`'s own best speed, geometric mean over the problems; 0 if there are none
    int problems = 0;     // won on `from`, and measured on `to` with that config
    int failed = 0;       // of those, not correct on `to`: they count as a thousandth of its speed
};

struct Comparison {
    std::vector<DeviceClass> devices;
    std::vector<ComparedProblem> problems;               // measured on at least one device, ordered by their text
    std::vector<std::vector<Portability>> portability;  // [from][to]
};

// Over all databases together; of a device in several of them the first that has a winner for a problem counts. The
// portability takes what was measured and predicts nothing.
Result<Comparison> compare_databases(const std::vector<std::string>& files);

// A page that needs nothing beside it.
std::string to_html(const Comparison& comparison);

}  // namespace tilewright
