// The search space of a problem on an architecture: candidate values per tunable, constraints with reasons, neighbours, seeds.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "backends/arch.h"
#include "backends/operation_plan.h"
#include "tilewright/config.h"
#include "tilewright/problem.h"

namespace tilewright {

struct SpaceField {
    const char* name;  // as in config_fields()
    int Config::* member;
    std::vector<int> values;  // ascending; one value: the field is not searched here
};

struct Space {
    Problem problem;
    Arch arch;
    std::vector<SpaceField> fields;

    // Of the cartesian product, before constraints.
    int64_t size() const;
    // The index-th member of the cartesian product, legal or not; 0 <= index < size(). The first field varies slowest.
    Config at(int64_t index) const;
};

// The spec of a problem as dense, aligned tensors with a positive scale, which is what is tuned.
KernelSpec dense_spec(const Problem& problem, const Config& config, KernelKind kind = KernelKind::attention_forward);

// `problem` must be valid.
Space search_space(const Problem& problem, const Arch& arch);

// ok if the config can run; otherwise unsupported, and the sentence names the value and the limit. Does not compile.
// Configs outside the space's lists of values are judged by the same constraints.
Status check(const Space& space, const Config& config);

// Why a candidate is rejected, in the order in which candidates are judged.
enum class Constraint {
    use,        // it could run but never differs from, or never beats, another candidate; or a field follows from others
    kernel,     // generate() refuses it: no such kernel, or more than the architecture has
    limits,     // threads or shared memory: not one block fits a unit
    registers,  // it would spill
};
const char* name(Constraint constraint);

struct Rejection {
    Config config;
    Constraint constraint = Constraint::use;
    std::string reason;  // check()'s sentence
};
// All legal candidates in the order of the cartesian product; the rest, with reasons, goes to `rejected` if it is given.
std::vector<Config> enumerate(const Space& space, std::vector<Rejection>* rejected = nullptr);

// Legal configs that differ from `config` in one field by one step of its list of values.
std::vector<Config> neighbours(const Space& space, const Config& config);

// Up to `count` legal configs, the best by the model first.
std::vector<Config> ranked(const Space& space, size_t count);

// The model's untuned choice. Never fails for a valid problem on a known architecture.
Config default_config(const Problem& problem, const Arch& arch);
// Whose configs attention_materialized takes on `arch`: its kernels are those of sm_80 on sm_90a too.
Arch baseline_arch(const Arch& arch);

}  // namespace tilewright
