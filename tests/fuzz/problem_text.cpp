// Fuzz target: problem texts. What is taken survives being written and read again, in any order of its parts.
#include <algorithm>
#include <string>

#include "fuzz/fuzz.h"
#include "tilewright/problem.h"

using namespace tilewright;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const Result<Problem> problem = parse_problem({reinterpret_cast<const char*>(data), size});
    if (!problem.ok()) return 0;
    FUZZ_REQUIRE(validate(*problem).ok());
    FUZZ_REQUIRE(visible_pairs(*problem) >= 0);
    const std::string text = to_text(*problem);
    const Result<Problem> again = parse_problem(text);
    FUZZ_REQUIRE(again.ok() && *again == *problem && to_text(*again) == text);
    // Written with its first part last, it is not what the fast way through canonical texts takes.
    const size_t first = text.find(':') + 1, second = text.find(',', first) + 1;
    const Result<Problem> turned = parse_problem(text.substr(0, first) + text.substr(second) + "," + text.substr(first, second - 1 - first));
    FUZZ_REQUIRE(turned.ok() && *turned == *problem);
    return 0;
}
