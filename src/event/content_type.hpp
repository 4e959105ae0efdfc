// Media types (RFC 9110, 8.3.1). Pure.
#pragma once

#include <string_view>

#include "base/text.hpp"

namespace outbox::event {

/// The part before the parameters, trimmed.
[[nodiscard]] constexpr std::string_view media_type(std::string_view content_type) noexcept {
  return trimmed(content_type.substr(0, content_type.find(';')));
}

/// Whether the type is application/json or ends in +json; parameters and case do not matter.
[[nodiscard]] constexpr bool is_json_type(std::string_view content_type) noexcept {
  constexpr std::string_view json = "application/json";
  if (content_type == json) return true;
  const std::string_view type = media_type(content_type);
  if (equal_ignoring_case(type, json)) return true;
  constexpr std::string_view suffix = "+json";
  return type.find('/') != std::string_view::npos && type.size() > suffix.size() &&
         equal_ignoring_case(type.substr(type.size() - suffix.size()), suffix);
}

}  // namespace outbox::event
