// The ids in files that say what was delivered: lines as json_line.hpp writes them, or one id per line.
#pragma once

#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <string_view>

#include "sink/read_back.hpp"

namespace outbox::sink {

/// In a line of JSON, or the line itself. None: an incomplete line. Pure.
[[nodiscard]] std::optional<EventId> delivered_id(std::string_view line);

/// Reads one file; its ids are of part `number`.
[[nodiscard]] Result<ReadPart> read_delivered(const std::string& path, std::uint32_t number,
                                              const TakeId& take);

}  // namespace outbox::sink
