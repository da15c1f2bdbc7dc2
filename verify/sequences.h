// Where the sequences of a decode or a packed workload lie: pages, starts, rows that are nobody's.
#pragma once
#include <functional>

#include "verify/workload.h"

namespace tilewright {

// Lengths of the sequences, the pages of their keys, the first row of each. Nothing where a problem has neither pages nor packed sequences nor
// lengths that may differ.
void deal_sequences(Workload& workload, const WorkloadOptions& options);
// Pages that are there: those in use, scattered, and some that nobody uses.
int64_t pages_of(const Workload& workload);
// Narrows the tensors of a packed workload, which hold all rows, to those of sequences: the others stay what they are, NaN to be read and a
// pattern where nothing may be written.
void show_sequences(Workload& workload);
// Calls `take` with one sequence of a packed workload after another, as if it were all that there is: problem and tensors are those of the sequence,
// in the same buffers. The workload is what it was afterwards, but for what `take` wrote into them.
void for_each_sequence(Workload& workload, const std::function<void(Workload& one, int64_t sequence)>& take);
// Normal numbers in the keys that there are: the same ones in pages of any size.
void fill_sequences(Workload& workload, const Tensor& tensor, uint64_t seed, uint64_t stream, double spread);

}  // namespace tilewright
