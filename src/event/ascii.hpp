// Letters of ASCII, whatever the locale says. Pure.
#pragma once

#include <algorithm>
#include <string_view>

namespace outbox::event {

[[nodiscard]] constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_alnum(char c) noexcept {
  return is_upper(c) || is_lower(c) || is_digit(c);
}
[[nodiscard]] constexpr char to_lower(char c) noexcept {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
[[nodiscard]] constexpr char to_upper(char c) noexcept {
  return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
}

/// Equal without regard to case, as the names of headers and media types are compared.
[[nodiscard]] constexpr bool same_name(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return to_lower(x) == to_lower(y);
         });
}

/// A token of RFC 9110, 5.6.2: what a header name and each half of a media type is.
[[nodiscard]] constexpr bool is_token(std::string_view text) noexcept {
  const auto token_char = [](char c) {
    return is_alnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), token_char);
}

}  // namespace outbox::event
