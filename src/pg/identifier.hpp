// Names of tables and columns in SQL.
#pragma once

#include <string>
#include <string_view>

namespace outbox::pg {

/// The name in double quotes.
[[nodiscard]] inline std::string quote_identifier(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted += '"';
}

}  // namespace outbox::pg
