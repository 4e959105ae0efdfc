// Captures what would go to stdout and stderr, as text.
#pragma once

#include <string>
#include <vector>

namespace outbox::cli {

/// While a Capture lives, write_out() and what is built on it append to the text instead, in this
/// thread. Only one may live at a time in a thread.
class Capture {
 public:
  explicit Capture(std::string& into);
  /// Captures the lines of print_error(), too, without the name of the program.
  Capture(std::string& into, std::vector<std::string>& errors);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture();
};

}  // namespace outbox::cli
