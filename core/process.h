// Runs another program (a compiler, a worker) and waits for it: its output, how it ended, and never longer than allowed.
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/status.h"

namespace tilewright {

struct ProcessCommand {
    std::vector<std::string> arguments;                                 // [0] is the program: a path, or a name looked up in PATH. No shell is involved.
    std::string directory = {};                                         // where it runs; empty: where the caller is
    std::vector<std::pair<std::string, std::string>> environment = {};  // added to the caller's own, or in place of it
    double timeout_seconds = 120;                                       // then the program and everything it started is killed
    size_t output_limit = size_t{8} << 20;                              // bytes kept of each stream; what is beyond is read and dropped
};

struct ProcessResult {
    int exit_code = -1;  // -1: it did not exit by itself
    int signal = 0;      // that ended it; 0: none
    bool timed_out = false;
    std::string output;  // standard output
    std::string error;   // standard error
    bool succeeded() const { return exit_code == 0; }
};

// Standard input is empty. The program gets a process group of its own and only the three standard descriptors that
// are made here: descriptors that the caller opened without close-on-exec would be inherited too.
// If the caller is killed, so is the program; what the program itself had started lives on until it is done.
// not_found: there is no such program. unavailable: the system has no descriptors or processes left.
// A program that fails, dies or runs too long is no error here: the result says so. Thread-safe.
Result<ProcessResult> run_process(const ProcessCommand& command);

// How the program ended, as a part of a sentence: "exited with status 1", "was killed by signal 11 (Segmentation fault)",
// "was stopped after 120 s".
std::string describe(const ProcessResult& result, const ProcessCommand& command);

// The path of `program` as run_process would find it; empty if there is none that may be executed.
std::string find_program(const std::string& program);

}  // namespace tilewright
