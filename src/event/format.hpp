// The formats of messages. A format is one function and one line in the table of format.cpp. Pure.
#pragma once

#include <outbox/event.hpp>
#include <outbox/sink.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "event/arena.hpp"

namespace outbox::event {

/// What a format fills in for one message.
struct Draft {
  const EventView& event;
  Arena& arena;
  std::string_view body{};
  std::string_view content_type{};
  std::vector<HeaderView>& headers;  ///< Initially empty.
};

using FormatFunction = void (*)(Draft& draft);

/// Payload as the body, attributes as headers.
void format_raw(Draft& draft);
/// One JSON envelope with everything, and the same headers.
void format_json(Draft& draft);

/// The headers of both: outbox-id, outbox-seq, outbox-time, outbox-type, outbox-aggregate-type, content-type when it is known,
/// then the event's own. Uses draft.content_type.
void add_attribute_headers(Draft& draft);

[[nodiscard]] std::span<const std::string_view> format_names();
/// Null when there is no such format.
[[nodiscard]] FormatFunction find_format(std::string_view name);

}  // namespace outbox::event
