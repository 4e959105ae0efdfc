// Captures what would go to stdout, as text.
#pragma once

#include <string>

namespace outbox::cli {

/// While a Capture lives, write_out() and what is built on it append to the text instead. Only one
/// may live at a time.
class Capture {
 public:
  explicit Capture(std::string& into);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture();
};

}  // namespace outbox::cli
