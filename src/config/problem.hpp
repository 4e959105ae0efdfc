// An error in the configuration, and its place.
#pragma once

#include <string>
#include <vector>

namespace outbox::config {

/// A place in a configuration file; line 0 stands for no particular line.
struct Position {
  int line{0};
  int column{0};
};

struct Problem {
  std::string what;   ///< "unknown setting relay.paeg"
  std::string path;   ///< "relay.paeg"; empty for the file as a whole.
  std::string where;  ///< "outbox.toml:3:1", "environment OUTBOX_RELAY_PAGE", "--set"
  Position at;        ///< The place in the file, if it is there.
  std::string hint;

  /// The text "what: where (hint: ...)".
  [[nodiscard]] std::string text() const;
};

using Problems = std::vector<Problem>;

/// The text "outbox.toml:3:1".
[[nodiscard]] std::string place(const std::string& file, Position at);

}  // namespace outbox::config
