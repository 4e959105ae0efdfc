// The headers of a schedule as they are stored: JSON.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "event/json_event.hpp"

namespace outbox::store {

using HeaderMap = std::map<std::string, std::string>;

[[nodiscard]] inline std::string headers_text(const HeaderMap& headers) {
  return event::headers_to_json({headers.begin(), headers.end()});
}

/// Anything but a JSON object of texts counts as no headers.
[[nodiscard]] inline HeaderMap headers_map(std::string_view json) {
  const auto headers = event::headers_from_json(json);
  return headers ? HeaderMap(headers->begin(), headers->end()) : HeaderMap();
}

}  // namespace outbox::store
