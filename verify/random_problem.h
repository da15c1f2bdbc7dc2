// Random problems with fixed seeds: shapes, masks, variants and layouts that nobody thought of.
#pragma once
#include "verify/workload.h"

namespace tilewright {

struct RandomProblem {
    Problem problem;
    WorkloadOptions options;
    int splits = 0;  // of decode problems
};
// The index-th problem of a seed: the same on every machine. Its sequences are short, so that all rows can be compared.
RandomProblem random_problem(uint64_t seed, uint64_t index, DType dtype, Operation operation = Operation::forward);
std::string describe(const RandomProblem& random);

}  // namespace tilewright
