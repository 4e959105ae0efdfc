#include <fmt/format.h>

#include <string_view>

#include "cli/completion_scripts.hpp"

namespace outbox::cli {
namespace {

constexpr const char* kTail = R"(
if [ "$funcstack[1]" = _outbox ]; then
  _outbox "$@"
else
  compdef _outbox outbox
fi
)";

/// _arguments and _describe interpret these characters.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\[]:$`\"").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string function_name(const std::string& path) {
  std::string name = "_outbox__" + path;
  for (char& c : name) {
    if (c == ' ') c = '_';
  }
  return name;
}

/// What completes the value. A blank completes nothing and shows the value's name.
std::string action(const OptionDefinition& option) {
  switch (kind_of(option)) {
    case ValueKind::file: return "_files";
    case ValueKind::directory: return "_files -/";
    case ValueKind::choice: return fmt::format("({})", fmt::join(option.choices, " "));
    case ValueKind::other: break;
  }
  return " ";
}

/// For each name one line: '(-c --config)--config=[Configuration]:FILE:_files'
std::string specs(const OptionDefinition& option) {
  std::string text;
  const std::string others =
      option.names.size() > 1 && !option.many ? "(" + option_names({option}) + ")" : "";
  for (const std::string& name : option.names) {
    std::string spec = (option.many ? "*" : others) + name;
    if (!option.value.empty()) spec += name.starts_with("--") ? "=" : "+";
    spec += "[" + escaped(option.help) + "]";
    if (!option.value.empty())
      spec += (option.value_optional ? "::" : ":") + escaped(option.value) + ":" + action(option);
    text += "    " + in_quotes(spec) + "\n";
  }
  return text;
}

/// Nothing for one that cannot be completed: the message that _arguments shows then would keep it from completing options.
std::string argument_spec(const OptionDefinition& argument, std::size_t position) {
  if (kind_of(argument) == ValueKind::other) return {};
  const std::string where =
      argument.many ? "*:" : std::to_string(position) + (argument.required ? ":" : "::");
  return " \\\n    " + in_quotes(where + escaped(argument.value) + ":" + action(argument));
}

/// The verbs of a verb, and what goes on with each.
std::string verbs_of(const VerbDefinition& verb) {
  const std::string name = function_name(verb.path);
  std::string text = "  _arguments -C $specs '(-)1:VERB:" + name + "__verbs' '(-)*:: :->rest'\n";
  text += "  local result=$?\n  [[ $state == rest ]] || return result\n  case $line[1] in\n";
  for (const VerbDefinition& inner : verb.verbs) {
    // The verb help is followed by a verb.
    const bool help = verb.path.empty() && inner.name == "help";
    text += fmt::format("  {}) {} ;;\n", inner.name, help ? "_outbox" : function_name(inner.path));
  }
  text += fmt::format("  esac\n}}\n\n{}__verbs() {{\n  local -a verbs=(\n", name);
  for (const VerbDefinition& inner : verb.verbs)
    text += "    " + in_quotes(inner.name + ":" + escaped(inner.help)) + "\n";
  return text + "  )\n  _describe -t verbs VERB verbs\n}\n\n";
}

std::string function_of(const VerbDefinition& verb, const std::string& common) {
  std::string text = (verb.path.empty() ? "_outbox" : function_name(verb.path)) +
                     "() {\n  local curcontext=$curcontext state line\n  typeset -A opt_args\n";
  text += "  local -a specs=(\n";
  for (const OptionDefinition& option : verb.options) text += specs(option);
  if (!verb.path.empty()) text += common;
  text += "  )\n";
  if (!verb.verbs.empty()) return text + verbs_of(verb);
  text += "  _arguments $specs";
  std::size_t position = 0;
  for (const OptionDefinition& argument : verb.arguments)
    text += argument_spec(argument, ++position);
  return text + "\n}\n\n";
}

}  // namespace

std::string zsh_completion(const VerbDefinition& program) {
  std::string common;
  for (const OptionDefinition& option : common_options(program)) common += specs(option);
  std::string text = fmt::format(
      "#compdef outbox\n# zsh completion for outbox {}, written by: outbox completion zsh\n\n",
      OUTBOX_VERSION);
  for (const VerbDefinition* const verb : with_inner_verbs(program))
    text += function_of(*verb, common);
  while (text.ends_with('\n')) text.pop_back();
  return text + "\n" + kTail;
}

}  // namespace outbox::cli
