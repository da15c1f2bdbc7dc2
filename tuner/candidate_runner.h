// Keeps one device worker alive and puts candidates through it, counting what they do to it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tuner/protocol.h"
#include "tuner/worker.h"

namespace tilewright {

struct RunnerOptions {
    std::vector<std::string> command;
    std::string log;
    double run_timeout_seconds = 60;
    double prepare_timeout_seconds = 600;  // the right answer of a large problem takes a while
    bool restart_after_failure = false;    // a launch that fails poisons the context (GPUs)
};

// Not thread-safe.
class CandidateRunner {
public:
    // `prepare` is sent to every new worker; its reply is the proof that the device answers.
    CandidateRunner(RunnerOptions options, WorkerRequest prepare) : options_(std::move(options)), prepare_(std::move(prepare)) {}

    // Starts a worker unless one is there. unavailable: the device does not answer, three times in a row.
    Status ensure_worker();
    // The reply to an evaluation. A candidate that kills its worker (crash, hang, memory) is tried once more in a new one, and after the
    // second time reported as runtime or timeout, with both reasons. An error Status is the device's, not the candidate's.
    Result<WorkerReply> evaluate(const WorkerRequest& request);
    // All racers in turns; if they kill the worker the outcome says so.
    Result<WorkerReply> race(const WorkerRequest& request);
    int workers_lost() const { return lost_; }

private:
    RunnerOptions options_;
    WorkerRequest prepare_;
    std::unique_ptr<WorkerProcess> worker_;
    int lost_ = 0;
};

}  // namespace tilewright
