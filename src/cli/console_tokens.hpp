// outbox console token: who may use the console.
#pragma once

#include "cli/command.hpp"
#include "cli/context.hpp"

namespace outbox::cli {

void add_console_tokens(CLI::App& console, Context& context);

}  // namespace outbox::cli
