// What every command is built from: the table, options, exit codes, and the problem options that commands share.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/arch.h"
#include "tilewright/problem.h"
#include "tilewright/status.h"

namespace tilewright::cli {

using Arguments = std::vector<std::string>;  // what follows the command's name

// What a command returns.
constexpr int exit_success = 0;
constexpr int exit_no = 1;     // the question was understood and its answer is no: not found, not verified, slower
constexpr int exit_usage = 2;  // it could not be answered; one sentence on stderr says why and what would be right

struct Command {
    const char* name;
    const char* summary;  // one line, for --help
    int (*run)(const Arguments& arguments);
};
// The rows of commands.inc.
std::span<const Command> commands();

// Runs the command that the first argument names with the rest; `program` is what stands before it ("tilewright",
// "tilewright db"). Knows --help; an unknown name is bad usage and the message lists those that exist.
int dispatch(const std::string& program, std::span<const Command> table, const Arguments& arguments);
// All of main(): dispatch of commands(), --version, and no exception leaves it.
int run(const Arguments& arguments);

// Prints "tilewright <command>: <message>" to stderr and returns exit_usage.
int fail(const std::string& command, const std::string& message);
int fail(const std::string& command, const Status& status);

// The options of one command. Every command has --help and --json without asking.
//
//     std::string device = "cpu:0";
//     CommandLine line("bench", "times attention against its baselines");
//     line.option("device", &device, "ID", "where to run");
//     if (auto exit = line.parse(arguments)) return *exit;
//
// Variables keep their values where an option is not given; they must outlive parse(). Not thread-safe.
class CommandLine {
public:
    CommandLine(std::string command, std::string summary);
    ~CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    // --name VALUE; the help shows `value_name` and the present value, if any, as the default. A value that does not
    // parse as the variable's type is bad usage, and named.
    CommandLine& option(const char* name, std::string* value, const char* value_name, const char* help);
    CommandLine& option(const char* name, int* value, const char* value_name, const char* help);
    CommandLine& option(const char* name, int64_t* value, const char* value_name, const char* help);
    CommandLine& option(const char* name, double* value, const char* value_name, const char* help);
    // May be given several times.
    CommandLine& option(const char* name, std::vector<std::string>* values, const char* value_name, const char* help);
    CommandLine& flag(const char* name, bool* value, const char* help);  // true if given
    // What is given without an option name, in order; at most one variable. Without it, such words are bad usage.
    CommandLine& positional(const char* name, std::vector<std::string>* values, const char* help);
    CommandLine& example(const char* text);  // a whole command line, shown by --help

    // Fills the variables. Returns the exit code if the command is over: --help was printed, or the usage was bad.
    std::optional<int> parse(const Arguments& arguments);
    bool given(const char* name) const;  // after parse()
    bool json() const;                   // after parse(): print JSON, and nothing else, on stdout

private:
    struct Implementation;
    std::unique_ptr<Implementation> implementation_;
};

// --problem TEXT, or --model NAME with --phase, --seq, --batch.
class ProblemOptions {
public:
    void add_to(CommandLine& line);
    bool given() const { return !problem_.empty() || !model_.empty(); }
    // invalid_argument if neither or both are given, or what is given is wrong.
    Result<Problem> problem() const;

private:
    std::string problem_, model_, phase_ = "prefill";
    int64_t seq_ = 4096, batch_ = 1;
};

// As ProblemOptions for several: --problem TEXT as often as one likes, --problems FILE (one problem text a line, # begins a comment), a model.
class ProblemListOptions {
public:
    void add_to(CommandLine& line);
    // Each once, in the order of --problem, the file, the model. invalid_argument if there is none, or one is wrong: it is named, in a file by its line.
    Result<std::vector<Problem>> problems() const;
    bool given() const { return !texts_.empty() || !file_.empty() || !model_.empty(); }
    bool is_list() const { return !file_.empty() || texts_.size() + (model_.empty() ? 0 : 1) > 1; }  // was more than one asked for

private:
    std::vector<std::string> texts_;
    std::string file_, model_, phase_ = "prefill";
    int64_t seq_ = 4096, batch_ = 1;
};

// The architecture called `name`; not_found names those that are known.
Result<Arch> arch_named(const std::string& name);
// "60", "60s", "5m", "2h" as seconds.
Result<double> parse_duration(const std::string& text);
// "2.0 MiB", "912 B": for people.
std::string human_bytes(double bytes);

}  // namespace tilewright::cli
