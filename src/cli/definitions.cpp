#include "cli/definitions.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <string_view>

namespace outbox::cli {
namespace {

constexpr std::string_view kExamples = "Example:\n";

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// "EVENT ..." is the name of an argument that may be repeated.
std::string without_dots(const std::string& name) { return name.substr(0, name.find(' ')); }

OptionDefinition define(const CLI::Option& option, const std::string& path) {
  OptionDefinition found;
  found.help = option.get_description();
  for (const std::string& name : option.get_snames()) found.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) found.names.push_back("--" + name);
  const bool argument = found.names.empty();
  const bool flag = option.get_expected_max() == 0;
  if (!flag) found.value = argument ? without_dots(option.get_name(true)) : option.get_type_name();
  if (argument) found.names.push_back(found.value);
  found.value_optional = !flag && option.get_expected_min() == 0;
  if (found.value_optional && found.value.starts_with('[') && found.value.ends_with(']'))
    found.value = found.value.substr(1, found.value.size() - 2);
  if (found.value.find('|') != std::string::npos) found.choices = split(found.value, '|');
  found.many = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll && !flag &&
               !found.value_optional;
  found.required = option.get_required();
  found.common = path.empty() && option.get_configurable();
  found.default_value = option.get_default_str();
  return found;
}

/// Divides a footer into what add_footer() and what add_example() made.
void divide_footer(const std::string& footer, VerbDefinition& verb) {
  const std::size_t start = footer.find(kExamples);
  verb.notes = footer.substr(0, start);
  while (verb.notes.ends_with('\n')) verb.notes.pop_back();
  if (start == std::string::npos) return;
  for (const std::string& line : split(footer.substr(start + kExamples.size()), '\n')) {
    const std::size_t text = line.find_first_not_of(' ');
    if (text != std::string::npos) verb.examples.push_back(line.substr(text));
  }
}

VerbDefinition define(const CLI::App& app, const std::string& path) {
  VerbDefinition verb;
  verb.path = path;
  verb.name = app.get_name();
  verb.help = app.get_description();
  divide_footer(app.get_footer(), verb);
  for (const CLI::Option* option : app.get_options()) {
    const bool hidden = option->get_group().empty();
    if (!hidden)
      (option->get_positional() ? verb.arguments : verb.options).push_back(define(*option, path));
  }
  for (const CLI::App* inner :
       app.get_subcommands([](const CLI::App* one) { return is_shown(*one); }))
    verb.verbs.push_back(
        define(*inner, path.empty() ? inner->get_name() : path + " " + inner->get_name()));
  return verb;
}

}  // namespace

VerbDefinition definitions(const CLI::App& root) { return define(root, ""); }

std::vector<OptionDefinition> common_options(const VerbDefinition& program) {
  std::vector<OptionDefinition> common;
  std::copy_if(program.options.begin(), program.options.end(), std::back_inserter(common),
               [](const OptionDefinition& option) { return option.common; });
  return common;
}

ValueKind value_kind(const OptionDefinition& option) {
  if (!option.choices.empty()) return ValueKind::choice;
  if (option.value == "FILE" || option.value == "PATH") return ValueKind::file;
  return option.value == "DIR" ? ValueKind::directory : ValueKind::other;
}

}  // namespace outbox::cli
