// Logs go to stderr, one line per state change: a constant message, then key=value. Never payloads, header values,
// passwords or connection strings.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace outbox::log {

enum class Format { text, json };

/// Call once at start; without it warnings and errors go to stderr as text.
void configure(const std::string& level, Format format);

[[nodiscard]] spdlog::logger& logger();

template <class... Args>
void debug(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().debug(format, std::forward<Args>(args)...);
}
template <class... Args>
void info(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().info(format, std::forward<Args>(args)...);
}
/// A person may act.
template <class... Args>
void warn(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().warn(format, std::forward<Args>(args)...);
}
/// A person must act.
template <class... Args>
void error(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().error(format, std::forward<Args>(args)...);
}

}  // namespace outbox::log
