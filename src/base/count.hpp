// Counts in messages for people: "1 event", "2 events". Pure.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace outbox {

/// "1 event is" or "2 events are": `one` or `several` is appended. The noun's plural is regular.
template <std::integral Number>
[[nodiscard]] std::string count(std::string_view noun, Number number, std::string_view one = {},
                                std::string_view several = {}) {
  std::string text = std::to_string(number);
  text.append(" ").append(noun);
  if (number != 1) text.append("s");
  const std::string_view verb = number == 1 ? one : several;
  if (!verb.empty()) text.append(" ").append(verb);
  return text;
}

}  // namespace outbox
