// Base64 with padding (RFC 4648, 4). Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace outbox::event {

[[nodiscard]] constexpr std::size_t base64_length(std::size_t bytes) noexcept {
  return (bytes + 2) / 3 * 4;
}
/// Writes base64_length(bytes.size()) characters.
void write_base64(std::string_view bytes, char* to) noexcept;
[[nodiscard]] inline std::string base64_text(std::string_view bytes) {
  std::string text(base64_length(bytes.size()), '\0');
  write_base64(bytes, text.data());
  return text;
}
/// Returns nullopt for other characters, wrong padding, and unused bits that are not zero.
[[nodiscard]] std::optional<std::string> read_base64(std::string_view text);

}  // namespace outbox::event
