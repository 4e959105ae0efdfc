// The verbs, each in the file of its name. A new verb is one file and one line in main.cpp.
#pragma once

#include "cli/command.hpp"
#include "cli/context.hpp"

namespace outbox::cli {

void add_init(CLI::App& root, Context& context);
void add_migrate(CLI::App& root, Context& context);
void add_enqueue(CLI::App& root, Context& context);
void add_relay(CLI::App& root, Context& context);
void add_work(CLI::App& root, Context& context);
void add_consume(CLI::App& root, Context& context);
void add_inbox(CLI::App& root, Context& context);
void add_status(CLI::App& root, Context& context);
void add_top(CLI::App& root, Context& context);
void add_subscription(CLI::App& root, Context& context);
void add_events(CLI::App& root, Context& context);
void add_parked(CLI::App& root, Context& context);
void add_tasks(CLI::App& root, Context& context);
void add_replay(CLI::App& root, Context& context);
void add_prune(CLI::App& root, Context& context);
void add_adopt(CLI::App& root, Context& context);
void add_doctor(CLI::App& root, Context& context);
void add_sinks(CLI::App& root, Context& context);
void add_config(CLI::App& root, Context& context);
void add_verify(CLI::App& root, Context& context);
void add_audit(CLI::App& root, Context& context);
void add_completion(CLI::App& root, Context& context);
void add_man(CLI::App& root, Context& context);
void add_version(CLI::App& root, Context& context);
void add_console(CLI::App& root, Context& context);

// Subverbs that have a file of their own.
/// Adds create, rename, reset and drop to `outbox subscription`.
void add_subscription_changes(CLI::App& subscription, Context& context);
/// Adds `outbox tasks schedule`.
void add_task_schedules(CLI::App& tasks, Context& context);
/// Adds `outbox console token`.
void add_console_tokens(CLI::App& console, Context& context);

/// Adds all verbs, and the options of every verb.
void add_verbs(CLI::App& root, Context& context);

}  // namespace outbox::cli
