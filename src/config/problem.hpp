// An error in the configuration, and its place.
#pragma once

#include <string>
#include <vector>

namespace outbox::config {

/// A place in a configuration file; line 0: no line in particular.
struct Position {
  int line{0};
  int column{0};
};

struct Problem {
  std::string what;   ///< "unknown setting relay.paeg"
  std::string path;   ///< "relay.paeg"; empty: the file as a whole.
  std::string where;  ///< "outbox.toml:3:1", "environment OUTBOX_RELAY_PAGE", "--set"
  Position at;        ///< When it is in a file.
  std::string hint;

  /// "what: where (hint: ...)"
  [[nodiscard]] std::string text() const;
};

using Problems = std::vector<Problem>;

/// "outbox.toml:3:1"
[[nodiscard]] std::string place(const std::string& file, Position at);

}  // namespace outbox::config
