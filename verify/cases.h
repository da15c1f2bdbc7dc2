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
// The rows of cases.inc, cases_backward.inc or cases_decode.inc.
std::span<const Case> all_cases(Operation operation = Operation::forward);

#define TILEWRIGHT_CASE(name, rule) Status name(const CaseRunner& run);
namespace cases {
#include "verify/cases.inc"
}  // namespace cases
namespace backward_cases {
#include "verify/cases_backward.inc"
}  // namespace backward_cases
namespace decode_cases {
#include "verify/cases_decode.inc"
}  // namespace decode_cases
#undef TILEWRIGHT_CASE

}  // namespace tilewright
