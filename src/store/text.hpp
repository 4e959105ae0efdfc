// Text and bytes as every store holds them.
#pragma once

#include <algorithm>
#include <cstring>
#include <outbox/event.hpp>
#include <string>
#include <string_view>

#include "event/utf8.hpp"

namespace outbox::store {

/// The bytes are valid as long as the id.
[[nodiscard]] inline std::string_view to_bytes(const EventId& id) {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

/// The id with these 16 bytes.
[[nodiscard]] inline EventId to_id(std::string_view bytes) {
  EventId id;
  std::memcpy(id.bytes.data(), bytes.data(), std::min(bytes.size(), id.bytes.size()));
  return id;
}

/// The text with '?' for each byte that a database refuses: invalid UTF-8, and zero.
[[nodiscard]] inline std::string storable_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const std::size_t length = *at == '\0' ? 0 : event::utf8_length(at, end);
    length == 0 ? out.append(1, '?') : out.append(at, length);
    at += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace outbox::store
