// A [schedule.NAME] section of the file.
#pragma once

#include <optional>
#include <outbox/schedule.hpp>

#include "config/reading.hpp"

namespace outbox::config {

/// Returns nullopt after a complaint.
[[nodiscard]] std::optional<Schedule> read_schedule(const Member& section, Reading& reading);

}  // namespace outbox::config
