// The search behind the first lookup of a problem: exact, nearest, family, or the model's suggestion.
#pragma once
#include <functional>
#include <string>

#include "db/lookup/index.h"
#include "tilewright/tuning.h"

namespace tilewright::lookup {

struct Question {
    const Problem& problem;
    const DeviceClass& device;
    const LookupLimits& limits;
};

// An answer that refers to the index.
struct Answer {
    Config config;
    Provenance provenance = Provenance::heuristic;
    const Entry* entry = nullptr;          // null: not measured
    const Candidate* candidate = nullptr;  // the measurement of `config` on it
    double distance = 0;
    unsigned differences = 0;
    double predicted_us = 0;
};

// Calls `stale` for every row that would have been the answer but did not pass the check.
Answer search(const Index& index, const Question& question, const LookupHooks& hooks,
              const std::function<void(const Entry&, const Config&, const Status&)>& stale);

}  // namespace tilewright::lookup
