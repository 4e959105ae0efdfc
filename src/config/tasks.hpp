// A [task.TYPE] section of the file.
#pragma once

#include <optional>

#include "config/reading.hpp"

namespace outbox::config {

/// None after a complaint. Without `resolve` a section with references is checked less.
[[nodiscard]] std::optional<TaskSpec> read_task(const Member& section, bool resolve,
                                                Reading& reading);

/// Where the program of a command is: the path itself, or found in PATH. An error: there is none that can be run.
[[nodiscard]] Result<std::string> find_program(const std::string& name);

}  // namespace outbox::config
