// Options by Boost.Program_options; the only file that includes it.
#include <boost/program_options.hpp>
#include <cstdio>
#include <sstream>

#include "cli/cli.h"

namespace tilewright::cli {
namespace po = boost::program_options;

struct CommandLine::Implementation {
    std::string command, summary, positional_name, positional_help;
    std::vector<std::string> examples;
    po::options_description options{"options"};
    po::options_description hidden;  // the positional words
    po::positional_options_description positions;
    po::variables_map values;
    bool json = false, help = false;

    template <class T>
    void add(const char* name, T* value, const char* value_name, const char* help_text, const std::string& shown_default) {
        auto* semantic = po::value<T>()->value_name(value_name)->notifier([value](const T& given) { *value = given; });
        std::string text = shown_default.empty() ? help_text : std::string(help_text) + " [" + shown_default + "]";
        options.add_options()(name, semantic, text.c_str());
    }

    void print_help() const {
        std::string words = positional_name.empty() ? "" : " [" + positional_name + "...]";
        std::ostringstream text;
        text << "usage: tilewright " << command << words << " [OPTION...]\n\n" << summary << ".\n";
        if (!words.empty()) text << "  " << positional_name << ": " << positional_help << "\n";
        text << "\n" << options;
        if (!examples.empty()) text << "\nexamples:\n";
        for (const std::string& example : examples) text << "  " << example << "\n";
        std::fputs(text.str().c_str(), stdout);
    }
};

CommandLine::CommandLine(std::string command, std::string summary) : implementation_(new Implementation) {
    implementation_->command = std::move(command);
    implementation_->summary = std::move(summary);
}
CommandLine::~CommandLine() = default;

CommandLine& CommandLine::option(const char* name, std::string* value, const char* value_name, const char* help) {
    implementation_->add(name, value, value_name, help, *value);
    return *this;
}
CommandLine& CommandLine::option(const char* name, int* value, const char* value_name, const char* help) {
    implementation_->add(name, value, value_name, help, std::to_string(*value));
    return *this;
}
CommandLine& CommandLine::option(const char* name, int64_t* value, const char* value_name, const char* help) {
    implementation_->add(name, value, value_name, help, std::to_string(*value));
    return *this;
}
CommandLine& CommandLine::option(const char* name, double* value, const char* value_name, const char* help) {
    std::ostringstream text;
    text << *value;
    implementation_->add(name, value, value_name, help, text.str());
    return *this;
}
CommandLine& CommandLine::option(const char* name, std::vector<std::string>* values, const char* value_name, const char* help) {
    auto* semantic = po::value<std::vector<std::string>>()->value_name(value_name)->composing();
    semantic->notifier([values](const std::vector<std::string>& given) { *values = given; });
    implementation_->options.add_options()(name, semantic, help);
    return *this;
}
CommandLine& CommandLine::flag(const char* name, bool* value, const char* help) {
    implementation_->options.add_options()(name, po::bool_switch()->notifier([value](bool given) { *value = given; }), help);
    return *this;
}
CommandLine& CommandLine::positional(const char* name, std::vector<std::string>* values, const char* help) {
    auto* semantic = po::value<std::vector<std::string>>();
    semantic->notifier([values](const std::vector<std::string>& given) { *values = given; });
    implementation_->positional_name = name;
    implementation_->positional_help = help;
    implementation_->hidden.add_options()(name, semantic);
    implementation_->positions.add(name, -1);
    return *this;
}
CommandLine& CommandLine::example(const char* text) {
    implementation_->examples.push_back(text);
    return *this;
}

std::optional<int> CommandLine::parse(const Arguments& arguments) {
    Implementation& self = *implementation_;
    flag("json", &self.json, "print JSON for machines");
    self.options.add_options()("help,h", po::bool_switch(&self.help), "print this");
    po::options_description all;
    all.add(self.options).add(self.hidden);
    try {
        // No guessing: an abbreviated option would change its meaning when another is added.
        int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
        po::store(po::command_line_parser(arguments).options(all).positional(self.positions).style(style).run(), self.values);
        po::notify(self.values);
    } catch (const po::too_many_positional_options_error&) {
        return fail(self.command, "takes options only, but a word stands alone: see 'tilewright " + self.command + " --help'");
    } catch (const po::error& error) {
        return fail(self.command, std::string(error.what()) + ": see 'tilewright " + self.command + " --help'");
    }
    if (!self.help) return std::nullopt;
    self.print_help();
    return exit_success;
}

bool CommandLine::given(const char* name) const {
    auto found = implementation_->values.find(name);
    return found != implementation_->values.end() && !found->second.defaulted();
}
bool CommandLine::json() const { return implementation_->json; }

}  // namespace tilewright::cli
