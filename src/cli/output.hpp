// Writing to stdout and stderr. Whether everything reached stdout is checked once, at the end of
// the program (program.cpp).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <outbox/time.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outbox::cli {

/// Writes data to stdout as it is.
void write_out(std::string_view text);
/// Returns false if not everything could be written.
bool flush_out();
/// Writes text to stderr.
void write_err(std::string_view text);

/// Writes formatted data to stdout, without a line end.
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}

using Json = nlohmann::ordered_json;

/// Writes JSON to stdout, indented by two spaces per level.
void print_json(const Json& json);
/// The text, or null if it is empty.
[[nodiscard]] Json or_null(const std::string& text);
/// The time, or null if there is none. Unit: microseconds since 1970.
[[nodiscard]] Json time_or_null(std::optional<std::int64_t> us);
[[nodiscard]] Json time_or_null(std::optional<Timestamp> time);

/// Sets the name of the program in errors. Must be called before the first one.
void name_program(const std::string& name);
/// Writes "outbox: line" to stderr, without control characters, so that it is one line whatever
/// went wrong.
void print_error(const std::string& line);

/// The text with spaces for control characters: one line, and nothing that controls a terminal.
[[nodiscard]] std::string plain(std::string_view text);

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
