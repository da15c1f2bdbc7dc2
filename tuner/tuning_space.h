// The search space of a problem on an architecture, as the strategies see it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "model/space.h"
#include "tuner/search_space.h"

namespace tilewright {

struct TuningSpace {
    Space space;
    std::vector<Config> configs;                           // legal ones; configs[i] is configuration i of `search`
    SearchSpace search;                                    // its prior is the model's predicted time in microseconds
    std::map<std::string, int64_t> rejected;               // by constraint
    std::vector<Rejection> rejections;                     // every candidate that was rejected, with its reason
    std::map<std::string, std::string> rejected_examples;  // one reason by constraint
};

// `seeds` that are legal here are tried first, in their order; others are left out. unsupported: not one config is legal.
Result<TuningSpace> tuning_space(const Problem& problem, const Arch& arch, const std::vector<Config>& seeds);

// The space as a T1 document: fields with their values, and conditions that exactly its legal configs fulfil (conditions_of()). Launch sizes are left out: they
// follow from a config by code. read_t1() gives the same parameters and configurations in the same order.
std::string to_t1(const TuningSpace& space);

}  // namespace tilewright
