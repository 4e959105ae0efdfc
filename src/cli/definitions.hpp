// The verbs and options of the command line as data, for what is made from them besides --help: man
// pages and completions.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"

namespace outbox::cli {

/// An option or an argument.
struct OptionDefinition {
  std::vector<std::string> names;    // "-c", "--config"; the one of an argument has no hyphens
  std::string value;                 // its name in the help; empty for a flag
  std::vector<std::string> choices;  // what the value can be, if the name says so: "text|json"
  bool value_optional{false};
  bool many{false};
  bool required{false};
  bool common{false};  // of every verb
  std::string help;
  std::string default_value;
};

struct VerbDefinition {
  std::string path;  // "parked list"; empty for the program itself
  std::string name;
  std::string help;
  std::string notes;  // the text below the options in --help
  std::vector<std::string> examples;
  std::vector<OptionDefinition> arguments;
  std::vector<OptionDefinition> options;  // its own
  std::vector<VerbDefinition> verbs;
};

/// Everything that --help shows. All verbs must have been added before.
[[nodiscard]] VerbDefinition definitions(const CLI::App& root);
/// The options of every verb.
[[nodiscard]] std::vector<OptionDefinition> common_options(const VerbDefinition& program);

/// What a value is, where a shell can complete it.
enum class ValueKind { other, choice, file, directory };
[[nodiscard]] ValueKind value_kind(const OptionDefinition& option);

}  // namespace outbox::cli
