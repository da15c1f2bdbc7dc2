// The table of commands, and dispatch.
#include "cli/cli.h"

#include <cstdio>
#include <exception>


namespace tilewright::cli {

#define TILEWRIGHT_COMMAND(name, summary) int name##_command(const Arguments& arguments);
#include "cli/commands.inc"
#undef TILEWRIGHT_COMMAND

namespace {

constexpr Command table[] = {
#define TILEWRIGHT_COMMAND(name, summary) {#name, summary, name##_command},
#include "cli/commands.inc"
#undef TILEWRIGHT_COMMAND
};

void print_help(const std::string& program, std::span<const Command> commands) {
    std::printf("usage: %s COMMAND [OPTION...]\n\n", program.c_str());
    for (const Command& command : commands)
        if (*command.summary) std::printf("  %-10s %s\n", command.name, command.summary);
    std::printf("\n'%s COMMAND --help' lists the options of a command.\n", program.c_str());
    std::printf("Exit codes: 0 success, 1 the answer is no, 2 bad usage or an error.\n");
}

std::string names_of(std::span<const Command> commands) {
    std::string names;
    for (const Command& command : commands)
        if (*command.summary) names += (names.empty() ? "" : ", ") + std::string(command.name);
    return names;
}

}  // namespace

std::span<const Command> commands() { return table; }

int dispatch(const std::string& program, std::span<const Command> commands, const Arguments& arguments) {
    if (arguments.empty()) {
        std::fprintf(stderr, "%s: no command given: one of %s, or --help\n", program.c_str(), names_of(commands).c_str());
        return exit_usage;
    }
    const std::string& name = arguments[0];
    if (name == "--help" || name == "-h" || name == "help") {
        print_help(program, commands);
        return exit_success;
    }
    for (const Command& command : commands)
        if (name == command.name) return command.run(Arguments(arguments.begin() + 1, arguments.end()));
    std::fprintf(stderr, "%s: unknown command '%s': expected one of %s\n", program.c_str(), name.c_str(), names_of(commands).c_str());
    return exit_usage;
}

int run(const Arguments& arguments) {
    try {
        if (!arguments.empty() && arguments[0] == "--version") {
            std::printf("tilewright %s\n", TILEWRIGHT_VERSION);
            return exit_success;
        }
        return dispatch("tilewright", commands(), arguments);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "tilewright: internal error: %s\n", error.what());
        return exit_usage;
    }
}

int fail(const std::string& command, const std::string& message) {
    std::fprintf(stderr, "tilewright %s: %s\n", command.c_str(), message.c_str());
    return exit_usage;
}

int fail(const std::string& command, const Status& status) { return fail(command, status.message()); }

}  // namespace tilewright::cli
