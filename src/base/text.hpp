// Small functions on text: ASCII classes independent of the locale, hexadecimal digits, trimming,
// quoting, "did you mean". Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace outbox {

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
[[nodiscard]] std::string to_lower(std::string_view text);

[[nodiscard]] constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return to_lower(x) == to_lower(y);
         });
}

/// The text without spaces and tabs at both ends.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

inline constexpr std::string_view kHexDigits = "0123456789abcdef";
inline constexpr std::string_view kUpperHexDigits = "0123456789ABCDEF";

/// Appends the byte as two digits.
inline void append_hex(std::string& out, char byte, std::string_view digits = kHexDigits) {
  const auto value = static_cast<unsigned char>(byte);
  out.append(1, digits[value >> 4U]).append(1, digits[value & 15U]);
}
/// The unreserved characters of RFC 3986, 2.3, without letters and digits.
inline constexpr std::string_view kUnreserved = "-._~";
/// Percent-encodes every byte but letters, digits and those of `plain`.
[[nodiscard]] std::string percent_encoded(std::string_view text, std::string_view plain);
/// The digit's value from 0 to 15, or -1 if it is not a hexadecimal digit.
[[nodiscard]] constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// The number as "1,234,567".
[[nodiscard]] std::string with_commas(std::int64_t number);

/// The word in single quotes, shortened for a log line, with all but printable ASCII as \xNN.
[[nodiscard]] std::string in_quotes(std::string_view word);

/// Whether UTF-8 text contains a control character: C0, DEL, or C1 (U+0080 to U+009F).
[[nodiscard]] bool has_control(std::string_view text);

/// The known word with the fewest edits (insert, delete, replace, swap of neighbours, without
/// regard to case) from `word`; of equal ones the first. Returns nullopt if even the best differs
/// in more than a third of the longer word, because a suggestion would mislead.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view word,
                                                      std::span<const std::string_view> known);

/// A hint: "did you mean x?". If nothing is near, `otherwise`, or else the list of known words.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string_view> known,
                                       std::string_view otherwise = {});

}  // namespace outbox
