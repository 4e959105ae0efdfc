// The id in a line of a file that says what was delivered. Pure.
#pragma once

#include <optional>
#include <outbox/event.hpp>
#include <string_view>

namespace outbox::ops {

/// In a line of the file sink, or the line itself. None: an incomplete line.
[[nodiscard]] std::optional<EventId> delivered_id(std::string_view line);

}  // namespace outbox::ops
