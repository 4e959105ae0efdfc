// outbox tasks schedule.
#pragma once

#include "cli/command.hpp"
#include "cli/context.hpp"

namespace outbox::cli {

void add_task_schedules(CLI::App& tasks, Context& context);

}  // namespace outbox::cli
