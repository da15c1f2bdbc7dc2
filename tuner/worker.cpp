// Starting, asking and losing workers.
#include "tuner/worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "core/scratch_directory.h"

extern char** environ;

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;

// The last words on stderr, as a part of a sentence.
std::string last_words(const std::string& log) {
    const auto text = read_file(log);
    if (!text.ok()) return "";
    std::string words = *text;
    while (!words.empty() && isspace(static_cast<unsigned char>(words.back()))) words.pop_back();
    if (words.empty()) return "";
    const size_t line = words.rfind('\n');
    words = words.substr(line == std::string::npos ? 0 : line + 1);
    return ": " + words.substr(0, 300);
}

// Kills what belongs to the session that `leader` began: all that it had started, also compilers in process groups of their own. The leader must
// not have been waited for yet, or its number could be another's.
void kill_session(pid_t leader) {
    for (int round = 0; round < 100; ++round) {  // until nothing new has come while we looked
        bool found = false;
        const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir("/proc"), closedir);
        while (const dirent* entry = processes ? readdir(processes.get()) : nullptr) {
            const auto pid = static_cast<pid_t>(atoi(entry->d_name));
            if (pid <= 0 || pid == leader) continue;
            const auto stat = read_file("/proc/" + std::string(entry->d_name) + "/stat");
            if (!stat.ok()) continue;
            // "PID (NAME) STATE PARENT GROUP SESSION ...", where the name may hold anything.
            char state = 'Z';
            int parent = 0, group = 0, session = 0;
            const size_t end = stat->rfind(')');
            if (end == std::string::npos || sscanf(stat->c_str() + end + 1, " %c %d %d %d", &state, &parent, &group, &session) != 4) continue;
            if (session != leader || state == 'Z' || state == 'X') continue;
            kill(pid, SIGKILL);
            found = true;
        }
        if (!found) return;
        poll(nullptr, 0, 1);
    }
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const std::vector<std::string>& command, const std::string& log) {
    std::unique_ptr<WorkerProcess> worker(new WorkerProcess);
    worker->log_ = log;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return Status(StatusCode::unavailable, std::string("no socket for a worker: ") + strerror(errno));
    worker->socket_ = Descriptor(ends[0]);
    const Descriptor theirs(ends[1]);

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), 0);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), 1);
    posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    // A session of its own: Ctrl-C is for the tuner, which lets the current candidate finish; and it tells what the worker has started.
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    const int failure = posix_spawnp(&worker->pid_, arguments[0], &actions, &attributes, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failure != 0) {
        worker->pid_ = -1;
        return Status(StatusCode::unavailable, "cannot start the worker '" + command[0] + "': " + strerror(failure));
    }
    return worker;
}

WorkerProcess::~WorkerProcess() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    kill_session(pid_);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

WorkerProcess::Exchange WorkerProcess::lost(End end, double timeout_seconds) {
    socket_ = Descriptor();
    if (end == End::timed_out) kill(pid_, SIGKILL);
    // A worker that closed its pipe is about to end; one that does not is made to.
    siginfo_t info{};
    for (int wait_ms = 0; waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0; ++wait_ms) {
        if (wait_ms == 2000) kill(pid_, SIGKILL);
        poll(nullptr, 0, 1);
    }
    kill_session(pid_);  // what it had started
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    Exchange exchange{end, {}, ""};
    exchange.reply.outcome = end == End::timed_out ? Outcome::timeout : Outcome::runtime;
    char text[160];
    if (end == End::timed_out)
        snprintf(text, sizeof text, "no answer in %g s; the worker was killed", timeout_seconds);
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        snprintf(text, sizeof text, "the worker was killed by signal 9: the system ran out of memory, or somebody killed it");
    else if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "the worker was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(text, sizeof text, "the worker exited with status %d", WEXITSTATUS(status));
    exchange.reason = text + last_words(log_);
    exchange.reply.message = exchange.reason;
    return exchange;
}

WorkerProcess::Exchange WorkerProcess::ask(const WorkerRequest& request, double timeout_seconds) {
    const std::string line = to_line(request) + "\n";
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
    for (size_t sent = 0; sent < line.size();) {
        const ssize_t count = send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR) return lost(End::died, timeout_seconds);
        if (count > 0) sent += static_cast<size_t>(count);
    }
    while (true) {
        const size_t end = buffer_.find('\n');
        if (end != std::string::npos) {
            auto reply = parse_reply(std::string_view(buffer_).substr(0, end));
            buffer_.erase(0, end + 1);
            if (reply.ok()) return {End::replied, *std::move(reply), ""};
            Exchange exchange = lost(End::timed_out, timeout_seconds);
            exchange.end = End::died;
            exchange.reason = exchange.reply.message = "the worker answered what is no reply: " + reply.status().message();
            exchange.reply.outcome = Outcome::runtime;
            return exchange;
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0) return lost(End::timed_out, timeout_seconds);
        pollfd ready{socket_.get(), POLLIN, 0};
        if (poll(&ready, 1, static_cast<int>(std::min<int64_t>(left, 3600000))) <= 0) continue;
        char block[4096];
        const ssize_t count = read(socket_.get(), block, sizeof block);
        if (count > 0)
            buffer_.append(block, static_cast<size_t>(count));
        else if (count == 0 || errno != EINTR)
            return lost(End::died, timeout_seconds);
    }
}

}  // namespace tilewright
