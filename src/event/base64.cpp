#include "event/base64.hpp"

#include <array>
#include <cstdint>

namespace outbox::event {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::uint8_t kNotADigit = 255;

constexpr auto kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNotADigit);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}();

}  // namespace

void write_base64(std::string_view bytes, char* to) noexcept {
  const auto byte = [&](std::size_t i) {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U;
  };
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const unsigned group = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
    *to++ = kDigits[group >> 18U];
    *to++ = kDigits[group >> 12U & 63U];
    *to++ = i + 1 < bytes.size() ? kDigits[group >> 6U & 63U] : '=';
    *to++ = i + 2 < bytes.size() ? kDigits[group & 63U] : '=';
  }
}

std::optional<std::string> read_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && !text.empty() && text.back() == '=') {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::uint32_t value = kValues[static_cast<unsigned char>(c)];
    if (value == kNotADigit) return std::nullopt;
    bits = (bits << 6U | value) & 0xffffU;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xffU));
  }
  const bool left_over = (bits & ((1U << count) - 1U)) != 0;
  if (left_over) return std::nullopt;
  return bytes;
}

}  // namespace outbox::event
