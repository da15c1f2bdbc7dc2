// The words for stored numbers.
#include <array>

#include "db/store.h"

namespace tilewright {
namespace {

// At the index of its number.
constexpr std::array<const char*, 9> outcome_names = {"",        "correct",     "constraints", "compile", "runtime",
                                                      "correctness", "timeout", "predicted",   "imported"};

}  // namespace

const char* name(Outcome outcome) {
    const auto number = static_cast<size_t>(outcome);
    return number >= 1 && number < outcome_names.size() ? outcome_names[number] : "unknown outcome";
}

Result<Outcome> parse_outcome(std::string_view text) {
    for (size_t number = 1; number < outcome_names.size(); ++number) {
        if (text == outcome_names[number]) return static_cast<Outcome>(number);
    }
    return invalid_argument(std::string(text) +
                            " is no outcome: correct, constraints, compile, runtime, correctness, timeout, predicted, imported");
}

const char* name(Provenance provenance) {
    switch (provenance) {
        case Provenance::exact: return "exact";
        case Provenance::nearest: return "nearest";
        case Provenance::family: return "family";
        case Provenance::predicted: return "predicted";
        case Provenance::heuristic: return "heuristic";
    }
    return "unknown provenance";
}

}  // namespace tilewright
