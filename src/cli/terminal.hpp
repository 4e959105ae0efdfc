// What may be written besides plain text. Without a terminal, and where NO_COLOR and TERM=dumb ask
// for it, nothing may.
#pragma once

#include <string>

namespace outbox::cli {

/// The cursor can be moved there: a terminal, and not a dumb one.
[[nodiscard]] bool is_screen(int fd);
/// On stdout, in red.
[[nodiscard]] std::string alarming(const std::string& text);

}  // namespace outbox::cli
