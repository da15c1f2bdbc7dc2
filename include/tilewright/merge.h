// Merging results of attention over disjoint sets of keys: of a shared prefix and an own suffix, of machines that share a sequence.
#pragma once
#include <cstdint>
#include <span>

#include "tilewright/status.h"

namespace tilewright {

// What attention over some keys left behind for `rows` rows: out [rows][columns] and lse [rows], contiguous, float32, in host
// memory, owned by the caller. lse is the natural logarithm that attention gives; a row that saw no key is out 0, lse -infinity.
struct AttentionState {
    const float* out = nullptr;
    const float* lse = nullptr;
};

// The result over the union of the keys: each out weighted with exp(lse - lse of the union). Empty rows change nothing, and rows
// that are empty in all states, or where there are no states, are empty. Where lse is NaN or +infinity the row becomes NaN.
// What is in `out` of an empty row does not matter. Sums are float64 in the order of the states, rounded once.
// `out` [rows][columns] and `lse` [rows] (null: not wanted) may be those of one of the states, and may overlap none otherwise.
// A sink belongs to one state at most. invalid_argument: rows or columns are negative, or a needed pointer is null.
// Thread-safe; runs on the calling thread.
Status attention_merge(std::span<const AttentionState> states, int64_t rows, int64_t columns, float* out, float* lse);

}  // namespace tilewright
