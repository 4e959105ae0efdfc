// A [task.TYPE] section of the file.
#pragma once

#include <optional>

#include "config/reading.hpp"

namespace outbox::config {

/// Returns nullopt after a complaint. Without `resolve` a section with references is checked less.
[[nodiscard]] std::optional<TaskSpec> read_task(const Member& section, bool resolve,
                                                Reading& reading);

/// The path of a command's program: the name itself, or found in PATH. Fails if none can be run.
[[nodiscard]] Result<std::string> find_program(const std::string& name);

}  // namespace outbox::config
