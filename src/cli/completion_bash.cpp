#include <fmt/format.h>

#include "cli/completion_scripts.hpp"

namespace outbox::cli {
namespace {

constexpr const char* kHead = R"(# bash completion for outbox {}, written by: outbox completion bash
# For this shell: source <(outbox completion bash)

)";

// How bash divides the line: "--config=a.toml" is three words, "sqlite:shop.db" too.
constexpr const char* kBashBody = R"(
_outbox() {
  local word=${COMP_WORDS[COMP_CWORD]} verb='' verbs='' options='' argument='' value='' option='' joined='' prefix='' token i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    token=${COMP_WORDS[i]}
    if [[ $token == [=:]* ]]; then joined=yes; continue; fi
    if [[ $joined || ($option && $token != -*) ]]; then joined=''; option=''; continue; fi
    option=''
    if [[ $token == -* ]]; then
      value=''
      _outbox_value "$verb" "$token"
      [[ $value ]] && option=$token
      continue
    fi
    _outbox_verb "$verb"
    # The verb help is followed by a verb.
    if [[ " $verbs " == *" $token "* && "$verb $token" != ' help' ]]; then verb=${verb:+$verb }$token; fi
  done
  if [[ $word == [=:]* ]]; then joined=yes; word=''; fi
  if [[ $joined && ! $option ]]; then return; fi
  if [[ $word == --*=* ]]; then
    option=${word%%=*} prefix=${word%%=*}= word=${word#*=}
  fi
  _outbox_verb "$verb"
  value=$argument
  if [[ $option && ($joined || $prefix || $word != -*) ]]; then
    value=''
    _outbox_value "$verb" "$option"
  elif [[ $word == -* ]]; then
    value=$options
  elif [[ $verbs ]]; then
    value=$verbs
  elif [[ ! $value ]]; then
    value=$options
  fi
  case $value in
  @text) ;;
  @file)
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -P "$prefix" -f -- "$word")
    ;;
  @directory)
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -P "$prefix" -d -- "$word")
    ;;
  *) mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$value" -- "$word") ;;
  esac
}
complete -F _outbox outbox
)";

std::string words(const OptionDefinition& option) {
  switch (kind_of(option)) {
    case ValueKind::file: return "@file";
    case ValueKind::directory: return "@directory";
    case ValueKind::choice: return fmt::format("{}", fmt::join(option.choices, " "));
    case ValueKind::other: break;
  }
  return "@text";
}

std::string values_of(const std::string& path, const std::vector<OptionDefinition>& options) {
  std::string text;
  for (const OptionDefinition& option : options) {
    if (option.value.empty()) continue;
    std::string patterns;
    for (const std::string& name : option.names)
      patterns += (patterns.empty() ? "" : " | ") + path + "' " + name + "'";
    text += "  " + patterns + ") value='" + words(option) + "' ;;\n";
  }
  return text;
}

}  // namespace

std::string bash_completion(const VerbDefinition& program) {
  const std::string common = option_names(common_options(program));
  std::string text = fmt::format(fmt::runtime(kHead), OUTBOX_VERSION);
  text += "# The verbs of a verb, its options, and what its argument is.\n_outbox_verb() {\n";
  text += "  verbs='' options='' argument=''\n  case $1 in\n";
  std::string values;
  for (const VerbDefinition* const verb : with_inner_verbs(program)) {
    std::string options = option_names(verb->options);
    if (!verb->path.empty()) options += " " + common;
    const std::string argument = verb->arguments.empty() ? "" : words(verb->arguments.front());
    text += fmt::format("  '{}')\n    verbs='{}'\n    options='{}'\n    argument='{}'\n    ;;\n",
                        verb->path, verb_names(*verb), options, argument);
    if (!verb->path.empty()) values += values_of("'" + verb->path + "'", verb->options);
  }
  text +=
      "  esac\n}\n\n# What the value of an option is; nothing for a flag.\n_outbox_value() {\n  case \"$1 $2\" in\n";
  text += values + values_of("*", program.options) + "  esac\n}\n";
  return text + kBashBody;
}

}  // namespace outbox::cli
