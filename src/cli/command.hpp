// Describing the command line. Hides the parser library: its headers are slow to compile and are included in command.cpp
// and nowhere else.
//
//   struct Options { std::string name; bool json{false}; };
//   void add_greet(Command& root, Context& context) {
//     auto options = std::make_shared<Options>();
//     Command greet = root.verb("greet", "Say hello");
//     greet.argument("NAME", &options->name, "whom");
//     greet.option("--json", &options->json, {}, "as JSON");
//     greet.run([options] { return greet_somebody(*options); });
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

/// Where the value of an option or argument goes. bool: a flag, without value. vector: may be given several times.
/// milliseconds: a duration such as 10s. What the place holds before is the default.
using Into =
    std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*,
                 std::uint64_t*, std::optional<std::uint64_t>*, std::chrono::milliseconds*>;

/// The program or one of its verbs.
class Command {
 public:
  Command verb(const std::string& name, const std::string& help);

  /// `names`: "-c,--config". `value`: how the value is called in the help; empty for a flag.
  void option(const std::string& names, Into into, const std::string& value,
              const std::string& help);
  /// An option for the program itself: people are not told of it.
  void hidden_option(const std::string& names, Into into);
  /// An option whose value may be left out: then `into` becomes `without`.
  void option_or(const std::string& names, std::optional<std::string>* into,
                 const std::string& without, const std::string& value, const std::string& help);
  /// By position. A string is required, an optional and a vector are not.
  void argument(const std::string& name, Into into, const std::string& help);

  /// Text after the options of --help.
  void footer(const std::string& text);
  /// A command line for the end of --help, after the footer. Every verb has one.
  void example(const std::string& line);
  /// What the verb does; returns the exit code.
  void run(std::function<int()> body);

 private:
  friend class Program;
  Command(CLI::App& app, std::function<int()>& chosen) : app_(&app), chosen_(&chosen) {}

  CLI::App* app_;
  std::function<int()>* chosen_;
};

class Program {
 public:
  Program(const std::string& about, const std::string& version);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Program(Program&&) = delete;
  Program& operator=(Program&&) = delete;
  ~Program();

  [[nodiscard]] Command root();
  /// The verb `help`; after all others.
  void add_help();
  /// Parses, and runs the verb. Returns the exit code; what the verb throws comes out.
  [[nodiscard]] int run(int argc, const char* const* argv);

 private:
  [[nodiscard]] int help(const std::vector<std::string>& verbs) const;

  std::unique_ptr<CLI::App> app_;
  std::function<int()> chosen_;
};

}  // namespace outbox::cli
