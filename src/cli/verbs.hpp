// The verbs, each in the file of its name. A new one is a file and a line in main.cpp.
#pragma once

#include "cli/command.hpp"
#include "cli/context.hpp"

namespace outbox::cli {

void add_init(Command& root, Context& context);
void add_migrate(Command& root, Context& context);
void add_enqueue(Command& root, Context& context);
void add_relay(Command& root, Context& context);
void add_status(Command& root, Context& context);
void add_subscription(Command& root, Context& context);
void add_config(Command& root, Context& context);
void add_demo(Command& root, Context& context);
void add_bench(Command& root, Context& context);
void add_version(Command& root, Context& context);

}  // namespace outbox::cli
