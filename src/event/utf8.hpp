// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace outbox::event {

/// The length of the valid sequence at `at`, 1 to 4; 0 if there is none. `at` must be before `end`.
[[nodiscard]] inline std::size_t utf8_length(const char* at, const char* end) noexcept {
  const auto byte = [&](int i) { return static_cast<unsigned char>(at[i]); };
  const auto continues = [&](int i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80U) return 1;
  if (lead < 0xc2U || lead > 0xf4U) return 0;
  if (end - at < 2 || !continues(1)) return 0;
  if (lead < 0xe0U) return 2;
  if (end - at < 3 || !continues(2)) return 0;
  if (lead < 0xf0U) {
    const bool overlong = lead == 0xe0U && byte(1) < 0xa0U;
    const bool surrogate = lead == 0xedU && byte(1) >= 0xa0U;
    return overlong || surrogate ? 0 : 3;
  }
  if (end - at < 4 || !continues(3)) return 0;
  const bool overlong = lead == 0xf0U && byte(1) < 0x90U;
  const bool too_high = lead == 0xf4U && byte(1) >= 0x90U;
  return overlong || too_high ? 0 : 4;
}

[[nodiscard]] inline bool is_utf8(std::string_view text) noexcept {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::uint64_t word = 0;
    if (end - at >= 8 && (std::memcpy(&word, at, 8), (word & 0x8080808080808080ULL) == 0)) {
      at += 8;
      continue;
    }
    const std::size_t length = utf8_length(at, end);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

}  // namespace outbox::event
