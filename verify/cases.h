// The cases by name.
#pragma once
#include <span>

#include "verify/case_runner.h"

namespace tilewright {

struct Case {
    const char* name;
    const char* rule;  // what it holds kernels to
    Status (*run)(const CaseRunner& run);
};
// The rows of cases.inc.
std::span<const Case> all_cases();

namespace cases {
#define TILEWRIGHT_CASE(name, rule) Status name(const CaseRunner& run);
#include "verify/cases.inc"
#undef TILEWRIGHT_CASE
}  // namespace cases

}  // namespace tilewright
