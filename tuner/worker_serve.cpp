// The worker's side of the protocol.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <new>

#include "tuner/worker.h"

namespace tilewright {
namespace {

bool write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = write(descriptor, text.data(), text.size());
        if (count < 0) return false;
        text.remove_prefix(static_cast<size_t>(count));
    }
    return true;
}

// If the machine runs out of memory, the kernel should take the worker and not the tuner.
void volunteer_for_the_out_of_memory_killer() {
    const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    if (write(file, "1000", 4) != 4) perror("oom_score_adj");
    close(file);
}

}  // namespace

int serve_worker(const std::function<WorkerReply(const WorkerRequest&)>& handle, int64_t memory_limit_bytes) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1) return 0;  // the tuner was gone before
    volunteer_for_the_out_of_memory_killer();
    if (memory_limit_bytes > 0) {
        const rlimit limit{static_cast<rlim_t>(memory_limit_bytes), static_cast<rlim_t>(memory_limit_bytes)};
        setrlimit(RLIMIT_DATA, &limit);
    }
    const int replies = fcntl(1, F_DUPFD_CLOEXEC, 3);
    if (replies < 0 || dup2(2, 1) < 0) return 1;
    std::string line;
    while (std::getline(std::cin, line)) {
        const auto request = parse_request(line);
        WorkerReply reply;
        if (!request.ok()) {
            reply.outcome = Outcome::runtime;
            reply.message = request.status().message();
        } else {
            try {
                reply = handle(*request);
            } catch (const std::bad_alloc&) {
                reply = {};
                reply.outcome = Outcome::runtime;
                reply.message = "out of memory";
            }
        }
        if (!write_all(replies, to_line(reply) + "\n")) return 1;
    }
    return 0;
}

}  // namespace tilewright
