// What may be written besides plain text. Nothing may without a terminal, nor where NO_COLOR or
// TERM=dumb asks for that.
#pragma once

#include <string>

namespace outbox::cli {

/// Whether the cursor can be moved there: this is a terminal, and not a dumb one.
[[nodiscard]] bool is_screen(int fd);
/// The text in red, if stdout may show colours.
[[nodiscard]] std::string alarming(const std::string& text);

}  // namespace outbox::cli
