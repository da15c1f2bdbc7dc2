// A worker: another process that does what may crash, hang or eat all memory, so that only the candidate is lost.
#pragma once
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/descriptor.h"
#include "tuner/protocol.h"

namespace tilewright {

// The tuner's side. The process ends with the object, with the tuner, and with the thread that started it. Not thread-safe.
class WorkerProcess {
public:
    // `command` is a program that calls serve_worker(); its stderr goes to `log` (a path, cut at every start). unavailable: it cannot be started.
    static Result<std::unique_ptr<WorkerProcess>> start(const std::vector<std::string>& command, const std::string& log);
    ~WorkerProcess();  // kills it and waits
    WorkerProcess(const WorkerProcess&) = delete;
    WorkerProcess& operator=(const WorkerProcess&) = delete;

    enum class End {
        replied,
        died,      // crashed, exited, or was killed by the system
        timed_out  // gave no reply in time and was killed
    };
    struct Exchange {
        End end = End::replied;
        WorkerReply reply;   // if replied; otherwise its outcome is runtime or timeout
        std::string reason;  // if not replied, one sentence: "killed by signal 11 (Segmentation fault)"
    };
    // Sends a request and waits for the reply. After anything but `replied` the process is gone.
    Exchange ask(const WorkerRequest& request, double timeout_seconds);

private:
    WorkerProcess() = default;
    Exchange lost(End end, double timeout_seconds);

    pid_t pid_ = -1;
    Descriptor socket_;  // both directions
    std::string buffer_, log_;
};

// The worker's side: answers requests from standard input on standard output until the input ends, then returns 0. What else is printed
// to standard output goes to standard error. std::bad_alloc in `handle` is answered as "out of memory". Call it from main's thread,
// once, in a process made for it. `memory_limit_bytes` bounds what may be allocated; 0: no bound.
int serve_worker(const std::function<WorkerReply(const WorkerRequest&)>& handle, int64_t memory_limit_bytes = 0);

}  // namespace tilewright
