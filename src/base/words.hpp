// The words of enumerations, as settings, the store and people write them. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace outbox {

/// Specialised for each enumeration that is written as words: the words in the order of its values,
/// which count from 0. A file that does not include the specialisation does not compile.
template <class Enum>
inline constexpr std::array<std::string_view, 0> kWords = [] {
  static_assert(sizeof(Enum) == 0, "include the header that has the words of this enumeration");
  return std::array<std::string_view, 0>{};
}();

template <class Enum>
[[nodiscard]] constexpr std::string_view to_word(Enum value) {
  return kWords<Enum>.at(static_cast<std::size_t>(value));
}

/// Not set if the enumeration has no such word.
template <class Enum>
[[nodiscard]] constexpr std::optional<Enum> from_word(std::string_view word) {
  const auto& words = kWords<Enum>;
  const auto* const found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

}  // namespace outbox
