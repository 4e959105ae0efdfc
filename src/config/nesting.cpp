#include "config/nesting.hpp"

#include <algorithm>
#include <string>

namespace outbox::config {
namespace {

/// The end of the string that begins at `from`: of one line, or of several when its quote stands there three times.
std::size_t string_end(std::string_view toml, std::size_t from) {
  const char quote = toml[from];
  const std::string three(3, quote);
  const bool lines = toml.substr(from, 3) == three;
  for (std::size_t at = from + (lines ? 3 : 1); at < toml.size(); ++at) {
    if (toml[at] == '\\' && quote == '"') {
      ++at;
    } else if (lines ? toml.substr(at, 3) == three : toml[at] == quote) {
      return at + (lines ? 3 : 1);
    } else if (!lines && toml[at] == '\n') {
      return at;
    }
  }
  return toml.size();
}

Position position(std::string_view toml, std::size_t at) {
  const std::string_view before = toml.substr(0, at);
  const std::size_t line_start = before.rfind('\n') + 1;
  return {.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
          .column = 1 + static_cast<int>(at - line_start)};
}

}  // namespace

std::optional<Position> too_many_key_parts(std::string_view toml) {
  std::size_t parts = 1;
  std::size_t at = 0;
  while (at < toml.size()) {
    const char c = toml[at];
    if (c == '"' || c == '\'') {
      at = string_end(toml, at);
      continue;
    }
    if (c == '#') {
      at = std::min(toml.find('\n', at), toml.size());
      continue;
    }
    if (c == '.' && ++parts > kMostKeyParts) return position(toml, at);
    // What ends a key, and what a key can begin after.
    if (std::string_view("\n=,{[").find(c) != std::string_view::npos) parts = 1;
    ++at;
  }
  return std::nullopt;
}

}  // namespace outbox::config
