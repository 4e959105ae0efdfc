// The command line, parsed by CLI11. Its headers are slow to compile and are included in
// command.cpp only.
//
//   struct Options { std::string name; bool json{false}; };
//   void add_greet(CLI::App& root, Context& context) {
//     auto options = std::make_shared<Options>();
//     CLI::App& verb = add_verb(root, "greet", "Say hello", [options] { return greet(*options); });
//     add_argument(verb, "NAME", &options->name, "Whom");
//     add_option(verb, "--json", &options->json, {}, "As JSON");
//     add_example(verb, "outbox greet World");
//   }
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
}

namespace outbox::cli {

/// Where the value of an option or argument is stored; its value before is the default. A bool is a
/// flag without value, a vector may be given several times, milliseconds are a duration such as
/// 10s.
using Into =
    std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*,
                 std::uint64_t*, std::optional<std::uint64_t>*, std::chrono::milliseconds*>;

/// `body` runs the verb and returns the exit code; a verb with subverbs has none. Without `help`
/// the verb is hidden.
CLI::App& add_verb(CLI::App& parent, const std::string& name, const std::string& help,
                   std::function<int()> body = {});
/// Whether --help lists the verb. A hidden one is for scripts.
[[nodiscard]] bool is_shown(const CLI::App& verb);
/// `names` is a text such as "-c,--config". `value` is the value's name in the help, and empty for
/// a flag. Without `help` the option is hidden.
void add_option(CLI::App& app, const std::string& names, Into into, const std::string& value,
                const std::string& help);
/// Adds an option whose value may be left out: then `into` becomes `without`.
void add_option_or(CLI::App& app, const std::string& names, std::optional<std::string>* into,
                   const std::string& without, const std::string& value, const std::string& help);
/// Adds an argument by position. A string is required, an optional and a vector are not.
void add_argument(CLI::App& app, const std::string& name, Into into, const std::string& help);
/// Sets the text after the options of --help.
void add_footer(CLI::App& app, const std::string& text);
/// Adds a command line to the end of --help, after the footer. Every verb has one.
void add_example(CLI::App& app, const std::string& line);

/// What is on the command line of a program.
struct Program {
  std::string name;
  std::string help;
  /// Adds the verbs of the program; or its options and, with set_body(), what it does.
  std::function<void(CLI::App&)> add;
};

/// `body` runs a program without verbs and returns the exit code.
void set_body(CLI::App& program, std::function<int()> body);

/// Parses the command line and runs what it names. Returns the exit code; exceptions of a verb pass
/// through.
[[nodiscard]] int run(const Program& program, int argc, const char* const* argv);

}  // namespace outbox::cli
