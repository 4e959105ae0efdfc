#include <fmt/format.h>

#include "cli/completion_scripts.hpp"

namespace outbox::cli {
namespace {

constexpr const char* kFishBody = R"(
# Whether the words before the cursor lead to this verb.
function __outbox_at
    set -l verb (__outbox_verb)
    test "$argv[1]" = "$verb"
end

function __outbox_verb
    set -l verb ''
    set -l value
    set -l tokens (commandline -opc)
    set -e tokens[1]
    for token in $tokens
        if set -q value[1]; and not string match -q -- '-*' $token
            set value
            continue
        end
        set value
        if string match -q -- '-*' $token
            if contains -- "$verb $token" $__outbox_valued; or contains -- " $token" $__outbox_valued
                set value yes
            end
            continue
        end
        # The verb help is followed by a verb.
        set -l inner (string trim -- "$verb $token")
        if contains -- $inner $__outbox_verbs; and test $inner != help
            set verb $inner
        end
    end
    echo -n $verb
end

complete -c outbox -f
)";

/// fish has \' and \\ between single quotes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

/// -F: files; -a: these; nothing where nothing is known.
std::string candidates(const OptionDefinition& option) {
  switch (kind_of(option)) {
    case ValueKind::file: return " -F";
    case ValueKind::directory: return " -a '(__fish_complete_directories)'";
    case ValueKind::choice: return fmt::format(" -a '{}'", fmt::join(option.choices, " "));
    case ValueKind::other: break;
  }
  return {};
}

std::string line(const std::string& condition, const std::string& what, const std::string& help) {
  return "complete -c outbox -n " + condition + what + " -d " + quoted(help) + "\n";
}

std::string option_line(const std::string& condition, const OptionDefinition& option) {
  std::string what;
  for (const std::string& name : option.names)
    what += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.value.empty())
    what += (kind_of(option) == ValueKind::file ? " -r" : " -x") + candidates(option);
  return line(condition, what, option.help);
}

std::string argument_line(const std::string& condition, const OptionDefinition& argument) {
  const std::string what = candidates(argument);
  return what.empty() ? what : line(condition, what, argument.help);
}

}  // namespace

std::string fish_completion(const VerbDefinition& program) {
  const std::vector<OptionDefinition> common = common_options(program);
  std::string verbs;
  std::string valued;
  std::string lines;
  for (const VerbDefinition* const verb : with_inner_verbs(program)) {
    const std::string condition = quoted("__outbox_at " + quoted(verb->path));
    if (!verb->path.empty()) verbs += " \\\n    " + quoted(verb->path);
    for (const VerbDefinition& inner : verb->verbs)
      lines += line(condition, " -a " + inner.name, inner.help);
    for (const OptionDefinition& option : verb->options) {
      lines += option_line(condition, option);
      if (option.value.empty()) continue;
      for (const std::string& name : option.names)
        valued += " \\\n    " + quoted(verb->path + " " + name);
    }
    for (const OptionDefinition& argument : verb->arguments)
      lines += argument_line(condition, argument);
    if (verb->path.empty()) continue;  // has the common ones as its own
    for (const OptionDefinition& option : common) lines += option_line(condition, option);
  }
  return fmt::format(
      "# fish completion for outbox {}, written by: outbox completion fish\n\n"
      "set -g __outbox_verbs{}\n\n# Options with a value.\nset -g __outbox_valued{}\n{}\n{}",
      OUTBOX_VERSION, verbs, valued, kFishBody, lines);
}

}  // namespace outbox::cli
