// outbox completion: a script that completes the command line in a shell. The script asks the
// hidden verb `outbox complete`, which gets the words after "outbox" up to the cursor and prints
// one line for each word that the last one can become, with its help behind a tabulator. The line
// ":file" or ":directory" leaves the names to the shell.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "cli/definitions.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"

namespace outbox::cli {
namespace {

/// bash divides words at = and :, so that "--config=a.toml" is three of them.
constexpr std::string_view kBash = R"(# bash completion for outbox
_outbox() {
  local word=${COMP_WORDS[COMP_CWORD]} prefix='' token words=()
  for token in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ ${#words[@]} -gt 0 && ($token == [=:]* || ${words[-1]} == *[=:]) ]]; then
      words[-1]+=$token
    else
      words+=("$token")
    fi
  done
  if [[ $word == [=:]* ]]; then word=''; fi
  if [[ $word == --*=* ]]; then prefix=${word%%=*}= word=${word#*=}; fi
  mapfile -t COMPREPLY < <(outbox complete -- "${words[@]}" 2> /dev/null)
  case ${COMPREPLY[0]-} in
  :file)
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -P "$prefix" -f -- "$word")
    ;;
  :directory)
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -P "$prefix" -d -- "$word")
    ;;
  *)
    COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
    COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
    ;;
  esac
}
complete -F _outbox outbox
)";

constexpr std::string_view kZsh = R"(#compdef outbox
# zsh completion for outbox
_outbox() {
  local -a answer=("${(@f)$(outbox complete -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2> /dev/null)}")
  [[ $PREFIX == --*=* ]] && compset -P '*='
  case $answer[1] in
  :file) _files ;;
  :directory) _files -/ ;;
  ?*)
    answer=("${(@)answer//:/\\:}")
    answer=("${(@)answer/$'\t'/:}")
    _describe -t values outbox answer
    ;;
  esac
}

if [ "$funcstack[1]" = _outbox ]; then
  _outbox "$@"
else
  compdef _outbox outbox
fi
)";

constexpr std::string_view kFish = R"(# fish completion for outbox
function __outbox_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l answer (outbox complete -- $words[2..] "$word" 2> /dev/null)
    set -l prefix (string match -r -- '^--[^=]+=' "$word")
    set word (string replace -- "$prefix" '' "$word")
    switch "$answer[1]"
        case :file
            set answer (__fish_complete_path "$word")
        case :directory
            set answer (__fish_complete_directories "$word")
    end
    for line in $answer
        printf '%s%s\n' "$prefix" $line
    end
end
complete -c outbox -f -a '(__outbox_complete)'
)";

struct Shell {
  std::string_view name;
  std::string_view script;
};
constexpr std::array<Shell, 3> kShells{{{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}}};

int print_script(const std::string& name) {
  std::array<std::string_view, kShells.size()> names{};
  for (std::size_t i = 0; i < kShells.size(); ++i) {
    names.at(i) = kShells.at(i).name;
    if (name != names.at(i)) continue;
    write_out(std::string(kShells.at(i).script));
    return kOk;
  }
  throw Failure(kUsage, "there is no completion for the shell " + plain(name),
                did_you_mean(name, names, "bash, zsh or fish"));
}

/// Goes through the words before the completed one, and then knows what that one can become.
class CommandLine {
 public:
  explicit CommandLine(const VerbDefinition& program) : program_(program), verb_(&program) {}

  /// Takes a word that stands before the completed one.
  void pass(const std::string& word) {
    const OptionDefinition* const before = std::exchange(option_, nullptr);
    if (word.starts_with('-')) {
      option_ = find_option(word);
      return;
    }
    if (before != nullptr) return;  // the word is its value
    const auto inner = std::find_if(verb_->verbs.begin(), verb_->verbs.end(),
                                    [&](const auto& one) { return one.name == word; });
    // The verb help is followed by a verb.
    if (inner != verb_->verbs.end() && inner->path != "help") verb_ = &*inner;
  }

  [[nodiscard]] std::string complete(const std::string& word) const {
    if (const std::size_t end = word.find('=');
        word.starts_with("--") && end != std::string::npos) {
      const OptionDefinition* const option = find_option(word.substr(0, end));
      return option == nullptr ? "" : complete_values(*option, word.substr(end + 1));
    }
    if (word.starts_with('-')) return options(word);
    if (option_ != nullptr) return complete_values(*option_, word);
    std::string found;
    for (const VerbDefinition& inner : verb_->verbs) add(inner.name, inner.help, word, found);
    if (!verb_->verbs.empty()) return found;
    return verb_->arguments.empty() ? options(word)
                                    : complete_values(verb_->arguments.front(), word);
  }

 private:
  static void add(const std::string& candidate, const std::string& help, const std::string& word,
                  std::string& found) {
    if (candidate.starts_with(word)) found += candidate + "\t" + help + "\n";
  }

  static std::string complete_values(const OptionDefinition& option, const std::string& word) {
    std::string found;
    switch (value_kind(option)) {
      case ValueKind::file: return ":file\n";
      case ValueKind::directory: return ":directory\n";
      case ValueKind::choice:
        for (const std::string& choice : option.choices) add(choice, option.help, word, found);
        break;
      case ValueKind::other: break;
    }
    return found;
  }

  /// The option of the verb, or of every verb, with this name; nullptr if there is none that takes
  /// a value.
  [[nodiscard]] const OptionDefinition* find_option(const std::string& name) const {
    for (const auto* const options : {&verb_->options, &program_.options}) {
      for (const OptionDefinition& option : *options) {
        const auto& names = option.names;
        if (!option.value.empty() && std::find(names.begin(), names.end(), name) != names.end())
          return &option;
      }
    }
    return nullptr;
  }

  [[nodiscard]] std::string options(const std::string& word) const {
    std::vector<OptionDefinition> all = verb_->options;
    if (!verb_->path.empty()) {
      const auto common = common_options(program_);
      all.insert(all.end(), common.begin(), common.end());
    }
    std::string found;
    for (const OptionDefinition& option : all) {
      for (const std::string& name : option.names) add(name, option.help, word, found);
    }
    return found;
  }

  const VerbDefinition& program_;
  const VerbDefinition* verb_;
  const OptionDefinition* option_{nullptr};  ///< The option whose value comes next.
};

int complete(const CLI::App& root, std::vector<std::string> words) {
  if (words.empty()) words.emplace_back();
  const std::string last = words.back();
  words.pop_back();
  const VerbDefinition program = definitions(root);
  CommandLine line(program);
  for (const std::string& word : words) line.pass(word);
  write_out(line.complete(last));
  return kOk;
}

}  // namespace

void add_completion(CLI::App& root, Context& /*context*/) {
  auto shell = std::make_shared<std::string>();
  CLI::App& verb = add_verb(root, "completion", "Print a script that completes outbox in a shell",
                            [shell] { return print_script(*shell); });
  add_argument(verb, "bash|zsh|fish", shell.get(), "Which shell");
  add_footer(
      verb,
      "Completes verbs, options, the names of files, and values where there are only a few. The script asks the outbox in $PATH,\n"
      "which connects to nothing, so names of subscriptions and queues are not completed.\n\n"
      "Where it is looked for:\n"
      "  bash   ~/.local/share/bash-completion/completions/outbox (with the package bash-completion)\n"
      "  zsh    a file _outbox in a folder of $fpath\n"
      "  fish   ~/.config/fish/completions/outbox.fish");
  add_example(verb, "source <(outbox completion bash)");
  add_example(verb, "outbox completion fish > ~/.config/fish/completions/outbox.fish");

  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App& hidden =
      add_verb(root, "complete", {}, [&root, words] { return complete(root, *words); });
  add_argument(hidden, "WORD", words.get(), "Those after outbox, up to the cursor");
}

}  // namespace outbox::cli
