// vfork, two pipes and a deadline.
#include "core/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "core/descriptor.h"

extern char** environ;

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int tick_ms = 20;        // how soon the end of a program is seen whose pipes outlive it
constexpr int closed_tick_ms = 1;  // ... and of one that has closed its pipes, as an exit does a moment before it is seen

struct Pipe {
    Descriptor read, write;
    bool open() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return false;
        read = Descriptor(ends[0]);
        const Descriptor low(ends[1]);
        write = Descriptor(fcntl(low.get(), F_DUPFD_CLOEXEC, 3));  // out of the way of the three that it will become one of
        return write.get() >= 0 && fcntl(read.get(), F_SETFL, O_NONBLOCK) == 0;
    }
};

std::vector<std::string> merged_environment(const ProcessCommand& command) {
    std::vector<std::string> result;
    for (char** entry = environ; *entry; ++entry) {
        std::string text = *entry;
        bool replaced = std::any_of(command.environment.begin(), command.environment.end(),
                                    [&](const auto& pair) { return text.compare(0, pair.first.size() + 1, pair.first + "=") == 0; });
        if (!replaced) result.push_back(std::move(text));
    }
    for (const auto& [key, value] : command.environment) result.push_back(key + "=" + value);
    return result;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
}

// All that the new process needs, made before it exists: between vfork and exec it shares our memory and may allocate nothing.
struct Start {
    char* const* arguments;
    char* const* environment;
    const char* directory;  // null: stay
    int output, error;
    pid_t parent;
};

// In the new process, with all signals blocked. Returns only if it failed, with the reason.
int become(const Start& start) {
    // The signal comes when the thread that started us ends, and that one waits for us. A parent that died before asked too late.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
    if (getppid() != start.parent) return ESRCH;
    if (setpgid(0, 0) != 0) return errno;
    close(0);
    if (open("/dev/null", O_RDONLY) != 0 || dup2(start.output, 1) < 0 || dup2(start.error, 2) < 0) return errno;
    if (start.directory && chdir(start.directory) != 0) return errno;
    struct sigaction original {};
    original.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; ++number) sigaction(number, &original, nullptr);  // refused for SIGKILL, SIGSTOP and the C library's own
    sigset_t none;
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, nullptr) != 0) return errno;
    execvpe(start.arguments[0], start.arguments, start.environment);
    return errno;
}

// 0 and the new process's id, or the reason why there is none. Signals are blocked until it has become the program: a handler of ours must not
// run in there, on our memory. By vfork's sharing it the reason is known before this returns; a pipe for it would be held open, and waited for, by whatever another thread forks
// at the moment. (The thread sanitizer makes vfork a fork; with it the program seems to have ended with status 127.)
int spawn(const Start& start, pid_t& pid) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    volatile int failure = 0;
    const pid_t started = vfork();
    if (started == 0) {
        failure = become(start);
        _exit(127);
    }
    if (started < 0) failure = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (started > 0 && failure != 0)
        while (waitpid(started, nullptr, 0) < 0 && errno == EINTR) {
        }
    pid = started;
    return failure;
}

// Reads what is there, at most what a pipe can hold, so that a program that never stops writing cannot hold us past the
// deadline; closes the descriptor at its end.
void drain(Descriptor& from, std::string& into, size_t limit) {
    char buffer[1 << 14];
    for (size_t left = size_t{1} << 20; from.get() >= 0 && left > 0; left -= std::min(left, sizeof buffer)) {
        ssize_t count = ::read(from.get(), buffer, sizeof buffer);
        if (count > 0) {
            into.append(buffer, std::min<size_t>(count, limit - std::min(limit, into.size())));
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            from = Descriptor();
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

// True once the program has ended; it is left to be waited for.
bool has_ended(pid_t pid) {
    siginfo_t info{};
    return waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

}  // namespace

Result<ProcessResult> run_process(const ProcessCommand& command) {
    if (command.arguments.empty()) return invalid_argument("no program to run");
    const std::string& program = command.arguments[0];
    auto failed = [&](int error) {
        bool absent = error == ENOENT || error == EACCES || error == ENOTDIR;
        return Status(absent ? StatusCode::not_found : StatusCode::unavailable, "cannot run '" + program + "': " + strerror(error));
    };

    Pipe output, error;
    if (!output.open() || !error.open()) return failed(errno);
    const std::vector<std::string> environment = merged_environment(command);
    const std::vector<char*> argument_pointers = pointers(command.arguments), environment_pointers = pointers(environment);
    pid_t pid = -1;
    if (int failure = spawn({argument_pointers.data(), environment_pointers.data(), command.directory.empty() ? nullptr : command.directory.c_str(),
                             output.write.get(), error.write.get(), getpid()},
                            pid))
        return failed(failure);
    output.write = Descriptor(), error.write = Descriptor();

    ProcessResult result;
    auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(command.timeout_seconds));
    while (true) {
        bool ended = has_ended(pid);  // asked before reading: what it wrote until then is in the pipes
        drain(output.read, result.output, command.output_limit), drain(error.read, result.error, command.output_limit);
        if (ended) break;
        if (Clock::now() >= deadline) {
            result.timed_out = true;
            break;
        }
        pollfd ends[] = {{output.read.get(), POLLIN, 0}, {error.read.get(), POLLIN, 0}};  // negative descriptors are skipped
        poll(ends, 2, output.read.get() < 0 && error.read.get() < 0 ? closed_tick_ms : tick_ms);
    }
    if (result.timed_out) kill(-pid, SIGKILL);  // before waiting: until then the group's number cannot be another's
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (result.timed_out) return result;
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    return result;
}

std::string describe(const ProcessResult& result, const ProcessCommand& command) {
    if (result.timed_out) {
        char text[64];
        snprintf(text, sizeof text, "was stopped after %g s", command.timeout_seconds);
        return text;
    }
    if (result.signal) return "was killed by signal " + std::to_string(result.signal) + " (" + strsignal(result.signal) + ")";
    return "exited with status " + std::to_string(result.exit_code);
}

std::string find_program(const std::string& program) {
    if (program.empty()) return "";
    if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0 ? program : "";
    const char* path = getenv("PATH");
    std::string all = path ? path : "/usr/local/bin:/usr/bin:/bin";
    for (size_t begin = 0; begin <= all.size();) {
        size_t end = std::min(all.find(':', begin), all.size());
        std::string folder = all.substr(begin, end - begin), candidate = (folder.empty() ? "." : folder) + "/" + program;
        if (access(candidate.c_str(), X_OK) == 0) return candidate;
        begin = end + 1;
    }
    return "";
}

}  // namespace tilewright
