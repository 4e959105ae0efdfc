// Numbers in PostgreSQL's binary format, which is big-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace outbox::pg::wire {

template <class T>
void append(std::string& to, T value) {
  const auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (int shift = static_cast<int>(sizeof(T) - 1) * 8; shift >= 0; shift -= 8) {
    to.push_back(static_cast<char>((bits >> static_cast<unsigned>(shift)) & 0xffU));
  }
}

template <class T>
[[nodiscard]] T read(const char* from) noexcept {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bits = bits << 8U | static_cast<unsigned char>(from[i]);
  return static_cast<T>(bits);
}

/// Microseconds from 1970 to 2000, where PostgreSQL's time begins.
inline constexpr std::int64_t kEpochUs = 946'684'800'000'000;

}  // namespace outbox::pg::wire
