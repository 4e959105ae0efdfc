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

/// Where the value of an option or argument is stored; its value before is the default. bool: a
/// flag, without value. vector: may be given several times. milliseconds: a duration such as 10s.
using Into =
    std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*,
                 std::uint64_t*, std::optional<std::uint64_t>*, std::chrono::milliseconds*>;

/// `body` runs the verb and returns the exit code; none for a verb with subverbs. Without `help`
/// the verb is hidden.
CLI::App& add_verb(CLI::App& parent, const std::string& name, const std::string& help,
                   std::function<int()> body = {});
/// Whether --help lists the verb. A hidden one is for scripts.
[[nodiscard]] bool is_shown(const CLI::App& verb);
/// `names`: "-c,--config". `value`: the value's name in the help; empty for a flag. Without `help`
/// the option is hidden.
void add_option(CLI::App& app, const std::string& names, Into into, const std::string& value,
                const std::string& help);
/// An option whose value may be left out: then `into` becomes `without`.
void add_option_or(CLI::App& app, const std::string& names, std::optional<std::string>* into,
                   const std::string& without, const std::string& value, const std::string& help);
/// By position. A string is required, an optional and a vector are not.
void add_argument(CLI::App& app, const std::string& name, Into into, const std::string& help);
/// Text after the options of --help.
void add_footer(CLI::App& app, const std::string& text);
/// A command line for the end of --help, after the footer. Every verb has one.
void add_example(CLI::App& app, const std::string& line);

/// What is on the command line of a program.
struct Program {
  std::string name;
  std::string help;
  /// Adds its verbs; or its options, and with set_body() what it does.
  std::function<void(CLI::App&)> add;
};

/// Of a program without verbs: runs it and returns the exit code.
void set_body(CLI::App& program, std::function<int()> body);

/// Parses the command line and runs what it names. Returns the exit code; exceptions of a verb pass
/// through.
[[nodiscard]] int run(const Program& program, int argc, const char* const* argv);

}  // namespace outbox::cli
