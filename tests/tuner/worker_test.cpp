// The tuner's side of a worker: what becomes of what a worker has started.
#include "tuner/worker.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/scratch_directory.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

// Whether it runs: one that is dead and not yet waited for does not.
bool runs(const std::string& pid) {
    const auto stat = read_file("/proc/" + pid + "/stat");
    return stat.ok() && stat->substr(stat->rfind(')') + 2, 1) != "Z";
}

class Worker : public testing::Test {
protected:
    // Starts what a compiler driver starts: a program in a process group of its own, which has a child.
    std::unique_ptr<WorkerProcess> start(const std::string& then) {
        const std::string script = "set -m; (sleep 300 & echo $! > " + scratch_.file("child") + "; wait) < /dev/null > /dev/null 2>&1 & read line; " + then;
        auto worker = WorkerProcess::start({"/bin/bash", "-c", script}, scratch_.file("log"));
        EXPECT_TRUE(worker.ok()) << worker.status().message();
        for (int i = 0; i < 1000 && child().empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_TRUE(runs(child()));
        return *std::move(worker);
    }
    std::string child() const {
        const auto text = read_file(scratch_.file("child"));
        return text.ok() && text->ends_with('\n') ? text->substr(0, text->size() - 1) : "";
    }

    ScratchDirectory scratch_ = *ScratchDirectory::create();
};

TEST_F(Worker, ThatHangsIsKilledWithAllThatItStarted) {
    const auto worker = start("sleep 300");
    const WorkerProcess::Exchange exchange = worker->ask({}, 0.2);
    EXPECT_EQ(exchange.end, WorkerProcess::End::timed_out);
    EXPECT_THAT(exchange.reason, HasSubstr("no answer in 0.2 s"));
    EXPECT_FALSE(runs(child()));
}

TEST_F(Worker, ThatDiesLeavesNothingBehind) {
    const auto worker = start("kill -SEGV $$");
    const WorkerProcess::Exchange exchange = worker->ask({}, 20);
    EXPECT_EQ(exchange.end, WorkerProcess::End::died);
    EXPECT_THAT(exchange.reason, HasSubstr("signal 11"));
    EXPECT_FALSE(runs(child()));
}

TEST_F(Worker, ThatIsNoLongerWantedEndsWithAllThatItStarted) {
    auto worker = start("sleep 300");
    worker.reset();
    EXPECT_FALSE(runs(child()));
}

}  // namespace
}  // namespace tilewright
