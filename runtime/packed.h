// What calls of packed sequences share: their checks, and all sequences as one.
#pragma once
#include "backends/arch.h"
#include "tilewright/attention.h"

namespace tilewright {

// The problem, which need not say so, as one of packed sequences.
Problem as_packed(Problem problem);
// All sequences of a packed problem as one batch.
Problem all_as_one(const Problem& problem, int64_t query_rows, int64_t key_rows);
// all_as_one(), if the problem and the sequences, but for what stands in their starts, may be computed.
Result<Problem> check_packed(const Problem& problem, const PackedSequences& sequences);
// What PackedParameters and BackwardParameters are told of the sequences.
template <class Parameters>
void set_sequences(Parameters& parameters, const Problem& problem, const PackedSequences& sequences) {
    parameters.query_starts = sequences.query_starts, parameters.key_starts = sequences.key_starts;
    parameters.sequences = static_cast<int>(problem.batch), parameters.wide = sequences.type == IndexType::int64;
    parameters.top_left = problem.alignment == Alignment::top_left;
}
// invalid_argument, naming the sequence, if the starts are wrong and the host can read them: on the CPU.
Status check_starts(const Problem& problem, const PackedSequences& sequences, const Arch& arch);

}  // namespace tilewright
