// The subverbs of `outbox subscription` that change more than settings.
#pragma once

#include "cli/command.hpp"
#include "cli/context.hpp"

namespace outbox::cli {

/// Adds create, rename, reset and drop.
void add_subscription_changes(CLI::App& verb, Context& context);

}  // namespace outbox::cli
