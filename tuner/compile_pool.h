// Compiles candidates side by side, each compiler in a worker of its own: a compiler that crashes or hangs costs one candidate.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tuner/protocol.h"

namespace tilewright {

// Thread-safe: the devices of a machine share one. First come, first served; whoever has a bounded number of requests in it gets a fair share. Destruction
// ends the compilations in progress.
class CompilePool {
public:
    // `command` starts a worker; their logs are "<log_prefix><number>".
    CompilePool(std::vector<std::string> command, std::string log_prefix, int workers, double timeout_seconds);
    ~CompilePool();

    // Returns a ticket, to be waited for or forgotten.
    int64_t submit(WorkerRequest request);
    // Waits for the ticket, which is then forgotten. A compiler that died or hung is a reply with outcome compile or timeout.
    WorkerReply wait(int64_t ticket);
    // Nobody will wait for it: it is not compiled unless that has begun.
    void forget(int64_t ticket);
    int workers() const { return static_cast<int>(threads_.size()); }

    // While one lives nothing is compiled: for measurements on the processor that compiles. It must not outlive the pool.
    class Quiet {
    public:
        explicit Quiet(CompilePool& pool);  // waits for the compilations in progress
        ~Quiet();
        Quiet(const Quiet&) = delete;
        Quiet& operator=(const Quiet&) = delete;

    private:
        CompilePool& pool_;
    };

private:
    struct Job {
        int64_t ticket;
        WorkerRequest request;
    };
    void work(int number, const std::stop_token& stop);

    const std::vector<std::string> command_;
    const std::string log_prefix_;
    const double timeout_seconds_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Job> jobs_;
    std::map<int64_t, WorkerReply> done_;
    std::set<int64_t> forgotten_;  // of those in progress
    int64_t last_ticket_ = 0;
    int compiling_ = 0, quiet_ = 0;
    std::vector<std::jthread> threads_;
};

}  // namespace tilewright
