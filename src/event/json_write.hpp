// Writes JSON strings to anything with push_back(char) and append(const char*, size), such as
// std::string and ArenaText. It is our own, because it runs for each delivered event, and nlohmann
// copies the text first. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/text.hpp"
#include "event/utf8.hpp"

namespace outbox::event {

/// The end of the run from `at` on that needs no escape inside a JSON string.
[[nodiscard]] inline const char* plain_run(const char* at, const char* end) noexcept {
  while (at < end) {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte < 0x20U || byte == '"' || byte == '\\') break;
    const std::size_t length = byte < 0x80U ? 1 : utf8_length(at, end);
    if (length == 0) break;
    at += length;
  }
  return at;
}

template <class Out>
void append_json_escape(Out& out, char c, std::string_view digits) {
  constexpr std::string_view named = "\"\\\b\f\n\r\t";
  constexpr std::string_view letters = "\"\\bfnrt";
  if (const std::size_t at = named.find(c); at != std::string_view::npos) {
    const std::array<char, 2> text{'\\', letters[at]};
    out.append(text.data(), text.size());
    return;
  }
  const auto byte = static_cast<unsigned char>(c);
  const std::array<char, 6> text{'\\', 'u', '0', '0', digits[byte >> 4U], digits[byte & 15U]};
  out.append(text.data(), text.size());
}

/// Appends the text in quotes. Invalid UTF-8 becomes U+FFFD, so the result is always valid JSON.
template <class Out>
void append_json_string(Out& out, std::string_view text, std::string_view digits = kHexDigits) {
  const char* at = text.data();
  const char* const end = at + text.size();
  out.push_back('"');
  for (;;) {
    const char* const stop = plain_run(at, end);
    out.append(at, static_cast<std::size_t>(stop - at));
    if (stop == end) break;
    if (static_cast<unsigned char>(*stop) >= 0x80U) {
      out.append("\xef\xbf\xbd", 3);
    } else {
      append_json_escape(out, *stop, digits);
    }
    at = stop + 1;
  }
  out.push_back('"');
}

}  // namespace outbox::event
