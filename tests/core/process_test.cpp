// What run_process promises: output, exit status, signals, deadlines, and safety under parallel calls.
#include "core/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/scratch_directory.h"

namespace tilewright {
namespace {

ProcessCommand shell(const std::string& script) { return {.arguments = {"sh", "-c", script}}; }

TEST(Process, KeepsBothStreamsApartAndTheExitStatus) {
    auto result = run_process(shell("echo out; echo err >&2; exit 3"));
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->output, "out\n");
    EXPECT_EQ(result->error, "err\n");
    EXPECT_EQ(result->exit_code, 3);
    EXPECT_FALSE(result->succeeded());
    EXPECT_EQ(describe(*result, {}), "exited with status 3");
}

TEST(Process, PassesArgumentsUntouchedByAnyShell) {
    auto result = run_process({.arguments = {"printf", "%s|", "a b", "$HOME", "*", ""}});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->output, "a b|$HOME|*||");
}

TEST(Process, ReportsTheSignalThatEndedIt) {
    auto result = run_process(shell("kill -SEGV $$"));
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->signal, SIGSEGV);
    EXPECT_EQ(result->exit_code, -1);
    EXPECT_NE(describe(*result, {}).find("signal 11"), std::string::npos);
}

TEST(Process, StopsAProgramAndItsChildrenAtTheDeadline) {
    auto scratch = ScratchDirectory::create();
    ASSERT_TRUE(scratch.ok());
    ProcessCommand command = shell("(sleep 1; touch late) & sleep 30");
    command.timeout_seconds = 0.2, command.directory = scratch->path();
    auto start = std::chrono::steady_clock::now();
    auto result = run_process(command);
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result->timed_out);
    EXPECT_FALSE(result->succeeded());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    EXPECT_EQ(describe(*result, command), "was stopped after 0.2 s");
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    EXPECT_FALSE(std::filesystem::exists(scratch->file("late")));
}

TEST(Process, EndsTheProgramOfACallerThatIsKilled) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);  // the program inherits it, so its end is seen when the program is gone
    const pid_t caller = fork();
    if (caller == 0) {
        close(ends[0]);
        (void)run_process(shell("echo >&" + std::to_string(ends[1]) + "; exec sleep 30")).ok();
        _exit(0);
    }
    close(ends[1]);
    char byte = 0;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    kill(caller, SIGKILL);
    waitpid(caller, nullptr, 0);
    pollfd end{ends[0], POLLIN, 0};
    ASSERT_EQ(poll(&end, 1, 10000), 1) << "the program lives on";
    EXPECT_EQ(read(ends[0], &byte, 1), 0);
    close(ends[0]);
}

TEST(Process, GivesTheProgramOriginalSignals) {
    signal(SIGUSR1, SIG_IGN);
    auto result = run_process(shell("kill -USR1 $$; sleep 5"));
    signal(SIGUSR1, SIG_DFL);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->signal, SIGUSR1);
}

TEST(Process, StopsAProgramThatNeverStopsWriting) {
    auto result = run_process({.arguments = {"yes"}, .timeout_seconds = 0.2, .output_limit = 4});
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result->timed_out);
    EXPECT_EQ(result->output, "y\ny\n");
}

TEST(Process, DoesNotWaitForAChildThatOutlivesTheProgram) {
    auto start = std::chrono::steady_clock::now();
    auto result = run_process(shell("sleep 20 & echo done"));
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->output, "done\n");
    EXPECT_EQ(result->exit_code, 0);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Process, DropsOutputBeyondTheLimitWithoutBlockingTheProgram) {
    ProcessCommand command = shell("head -c 3000000 /dev/zero; echo end >&2");
    command.output_limit = 1000;
    auto result = run_process(command);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->output.size(), 1000u);
    EXPECT_EQ(result->error, "end\n");
    EXPECT_EQ(result->exit_code, 0);
}

TEST(Process, SaysWhichProgramIsNotThere) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "this sanitizer makes vfork a fork: why there is no program stays in the new process's memory, which ends with status 127";
#endif
    auto result = run_process({.arguments = {"/nonexistent/compiler"}});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::not_found);
    EXPECT_NE(result.status().message().find("/nonexistent/compiler"), std::string::npos);
    EXPECT_EQ(run_process({}).status().code(), StatusCode::invalid_argument);
}

TEST(Process, SetsTheEnvironmentAndTheDirectory) {
    ProcessCommand command = shell("printf '%s %s %s' \"$ADDED\" \"$KEPT\" \"$PWD\"");
    setenv("ADDED", "old", 1), setenv("KEPT", "kept", 1);
    command.environment = {{"ADDED", "new"}}, command.directory = "/";
    auto result = run_process(command);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->output, "new kept /");
}

TEST(Process, ReadsAnEmptyStandardInput) {
    auto result = run_process({.arguments = {"cat"}, .timeout_seconds = 10});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->exit_code, 0);
    EXPECT_EQ(result->output, "");
}

TEST(Process, RunsManyAtOnceWithoutMixingThem) {
    std::vector<std::thread> threads;
    std::vector<std::string> outputs(32);
    for (size_t i = 0; i < outputs.size(); ++i)
        threads.emplace_back([&, i] {
            auto result = run_process(shell("for k in 1 2 3; do echo " + std::to_string(i) + "; done"));
            if (result.ok() && result->succeeded()) outputs[i] = result->output;
        });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < outputs.size(); ++i) {
        std::string line = std::to_string(i) + "\n";
        EXPECT_EQ(outputs[i], line + line + line);
    }
}

TEST(Process, FindsProgramsAsTheSystemDoes) {
    EXPECT_NE(find_program("sh"), "");
    EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
    EXPECT_EQ(find_program("no-such-program-anywhere"), "");
    EXPECT_EQ(find_program(""), "");
}

TEST(ScratchDirectory, HoldsFilesWhileItLivesAndLeavesNothing) {
    std::string path;
    {
        auto scratch = ScratchDirectory::create();
        ASSERT_TRUE(scratch.ok());
        path = scratch->path();
        EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
        std::string contents("a\0b", 3);
        ASSERT_TRUE(write_file(scratch->file("x"), contents).ok());
        auto back = read_file(scratch->file("x"));
        ASSERT_TRUE(back.ok());
        EXPECT_EQ(*back, contents);
        EXPECT_EQ(read_file(scratch->file("y")).status().code(), StatusCode::io);
        EXPECT_EQ(write_file(scratch->file("no/such"), "x").code(), StatusCode::io);
        EXPECT_EQ(write_file("/dev/full", "x").code(), StatusCode::io);
        EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
        ScratchDirectory moved = *std::move(scratch);
        EXPECT_EQ(moved.path(), path);
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace tilewright
