// What a template of the settings looks like before there are events. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace outbox::sink {

/// The template with x in place of its fields, whose values only an event has.
[[nodiscard]] inline std::string with_fields_as_x(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool brace = text.starts_with("{{") || text.starts_with("}}");
    const bool field = !brace && text.front() == '{';
    out += field ? 'x' : text.front();
    text.remove_prefix(field ? std::min(text.find('}'), text.size() - 1) + 1 : brace ? 2 : 1);
  }
  return out;
}

}  // namespace outbox::sink
