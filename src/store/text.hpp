// Text that every store can hold.
#pragma once

#include <string>
#include <string_view>

#include "event/utf8.hpp"

namespace outbox::store {

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
