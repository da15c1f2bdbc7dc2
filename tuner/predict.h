// Ranking a space without a device: real compilers, the model with what they say, and a static estimate of the main loop.
#pragma once
#include "tuner/protocol.h"
#include "tuner/tune.h"

namespace tilewright {

// Compiles the legal configs of `problem` for an architecture on all cores, the model's favourites first, and stores for each a row whose outcome is
// `predicted`, on a device that has the architecture's name and no other; configs that do not compile are stored as such. Nothing is
// measured, and no report of it is a measurement: its best is the shortest predicted time. Of the options, budget, compile_jobs, compile_timeout_seconds,
// worker_command, stop, progress and retry_failed count; what an earlier run stored with this toolchain is not compiled again.
// Errors: as of tune(); unsupported: not a forward problem; unavailable: the compiler is not there, or does not know the architecture.
Result<TuneReport> predict_space(const Problem& problem, const Arch& arch, Store& store, const TuneOptions& options);

// In a worker: compiles request.configs[0] for the architecture called request.device, and replies with one timing, the predicted, whose note names
// resources, occupancy and how the main loop was judged.
Status predict_candidate(const WorkerRequest& request, WorkerReply& reply);

}  // namespace tilewright
