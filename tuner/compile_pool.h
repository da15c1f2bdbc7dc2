// Compiles candidates side by side, each compiler in a worker of its own: a compiler that crashes or hangs costs one candidate.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tuner/protocol.h"

namespace tilewright {

// Thread-safe. Destruction ends the compilations in progress.
class CompilePool {
public:
    // `command` starts a worker; their logs are "<log_prefix><number>".
    CompilePool(std::vector<std::string> command, std::string log_prefix, int workers, double timeout_seconds);
    ~CompilePool();

    void submit(int64_t ticket, WorkerRequest request);
    // Waits for the ticket, which is then forgotten. A compiler that died or hung is a reply with outcome compile or timeout.
    WorkerReply wait(int64_t ticket);
    int workers() const { return static_cast<int>(threads_.size()); }

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
    std::vector<std::jthread> threads_;
};

}  // namespace tilewright
