// Writing to stdout and stderr. Whether everything reached stdout is found out once, at the end of
// the program (main.cpp), so verbs need not look after each line.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace outbox::cli {

/// Data, as it is, to stdout.
void write_out(std::string_view text);
/// So that a reader sees what has been written so far. False: not everything could be written.
bool flush_out();
/// To stderr.
void write_err(std::string_view text);

/// Formatted data to stdout; the line end is the caller's.
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}

/// The text with control characters as blanks: one line, and nothing a terminal would obey.
[[nodiscard]] std::string plain(std::string_view text);

}  // namespace outbox::cli
