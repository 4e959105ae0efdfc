// outbox completion: a script that completes the command line in a shell.
#include <array>
#include <string_view>

#include "base/text.hpp"
#include "cli/completion_scripts.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"

namespace outbox::cli {
namespace {

constexpr std::array<std::string_view, 3> kShells{"bash", "zsh", "fish"};

int completion(const CLI::App& root, const std::string& shell) {
  const VerbDefinition program = definitions(root);
  if (shell == "bash") {
    write_out(bash_completion(program));
  } else if (shell == "zsh") {
    write_out(zsh_completion(program));
  } else if (shell == "fish") {
    write_out(fish_completion(program));
  } else {
    throw Failure(kUsage, "there is no completion for the shell " + plain(shell),
                  did_you_mean(shell, kShells, "bash, zsh or fish"));
  }
  return kOk;
}

}  // namespace

std::vector<const VerbDefinition*> with_inner_verbs(const VerbDefinition& program) {
  std::vector<const VerbDefinition*> all{&program};
  for (const VerbDefinition& verb : program.verbs) {
    const auto inner = with_inner_verbs(verb);
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return all;
}

std::string option_names(const std::vector<OptionDefinition>& options) {
  std::string names;
  for (const OptionDefinition& option : options) {
    for (const std::string& name : option.names) names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

std::string verb_names(const VerbDefinition& verb) {
  std::string names;
  for (const VerbDefinition& inner : verb.verbs) names += (names.empty() ? "" : " ") + inner.name;
  return names;
}

std::string in_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void add_completion(CLI::App& root, Context& /*context*/) {
  auto shell = std::make_shared<std::string>();
  CLI::App& verb = add_verb(root, "completion", "Print a script that completes outbox in a shell",
                            [&root, shell] { return completion(root, *shell); });
  add_argument(verb, "bash|zsh|fish", shell.get(), "Which shell");
  add_footer(
      verb,
      "Completes verbs, options, the names of files, and values where there are only a few. It connects to nothing, so names\n"
      "of subscriptions and queues are not completed. The script belongs to this version: write it again after an update.\n\n"
      "Where it is looked for:\n"
      "  bash   ~/.local/share/bash-completion/completions/outbox (with the package bash-completion)\n"
      "  zsh    a file _outbox in a folder of $fpath\n"
      "  fish   ~/.config/fish/completions/outbox.fish");
  add_example(verb, "source <(outbox completion bash)");
  add_example(verb, "outbox completion fish > ~/.config/fish/completions/outbox.fish");
}

}  // namespace outbox::cli
