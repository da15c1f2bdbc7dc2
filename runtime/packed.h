// What calls of packed sequences share: their checks, and all sequences as one.
#pragma once
#include "backends/arch.h"
#include "tilewright/attention.h"

namespace tilewright {

// All sequences of a problem as one batch.
Problem all_as_one(const Problem& problem, int64_t query_rows, int64_t key_rows);
// all_as_one(), if the problem and the sequences, but for what stands in their starts, may be computed.
Result<Problem> check_packed(const Problem& problem, const PackedSequences& sequences);
// invalid_argument, naming the sequence, if the starts are wrong and the host can read them: on the CPU.
Status check_starts(const Problem& problem, const PackedSequences& sequences, const Arch& arch);

}  // namespace tilewright
