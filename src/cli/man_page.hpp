// Manual pages of the program and its verbs, made from the definitions of --help, in the macros of
// man(7).
#pragma once

#include <string>

#include "cli/definitions.hpp"

namespace outbox::cli {

/// The page outbox(1). `date` is YYYY-MM-DD.
[[nodiscard]] std::string program_page(const VerbDefinition& program, const std::string& date);
/// The page of a verb, with its own verbs inside.
[[nodiscard]] std::string verb_page(const VerbDefinition& verb, const std::string& date);

}  // namespace outbox::cli
