// The scripts that complete the command line in a shell, made from the definitions of --help.
#pragma once

#include <string>
#include <vector>

#include "cli/definitions.hpp"

namespace outbox::cli {

[[nodiscard]] std::string bash_completion(const VerbDefinition& program);
[[nodiscard]] std::string zsh_completion(const VerbDefinition& program);
[[nodiscard]] std::string fish_completion(const VerbDefinition& program);

/// The program and all verbs below it, each before its own verbs.
[[nodiscard]] std::vector<const VerbDefinition*> with_inner_verbs(const VerbDefinition& program);
/// All names of the options, separated by blanks.
[[nodiscard]] std::string option_names(const std::vector<OptionDefinition>& options);
[[nodiscard]] std::string verb_names(const VerbDefinition& verb);
/// Put between single quotes, as bash, zsh and fish understand them.
[[nodiscard]] std::string in_quotes(const std::string& text);

}  // namespace outbox::cli
