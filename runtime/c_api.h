// What the C interface's functions share: errors as numbers and a sentence, sizes of structures, and translation.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "tilewright/problem.h"
#include "tilewright/tilewright.h"
#include "tilewright/tuning.h"

namespace tilewright::c_api {

// The status as a number; its sentence becomes this thread's last error.
tilewright_status report(const Status& status);

inline Status is_null(const char* what) { return invalid_argument(std::string(what) + " is null"); }

// Sizes that this version knows. Smaller: fields that an older caller did not have are missing and cannot be guessed.
template <class Struct>
Status check_struct(const char* what, const Struct* given, size_t least = sizeof(Struct)) {
    if (!given) return is_null(what);
    if (given->struct_size < least)
        return invalid_argument(std::string(what) + ".struct_size is " + std::to_string(given->struct_size) + "; this library needs at least " + std::to_string(least));
    return {};
}

// The caller's structure, and where an older caller's ends the values of `init`.
template <class Struct>
Result<Struct> completed(const char* what, const Struct* given, Struct init, size_t least) {
    TILEWRIGHT_RETURN_IF_ERROR(check_struct(what, given, least));
    std::memcpy(&init, given, std::min<size_t>(given->struct_size, sizeof init));
    return init;
}

// Callers of the first version end before these.
constexpr size_t first_problem_size = offsetof(tilewright_problem, operation), first_config_size = offsetof(tilewright_config, spread),
                 first_backward_size = offsetof(tilewright_backward_tensors, bias_gradient);

// A valid problem, or why it is none.
Result<Problem> problem_of(const tilewright_problem* given);
// Writes as much of the answer as the caller has room for.
Status fill(const LookupResult& found, tilewright_config* config);

}  // namespace tilewright::c_api
