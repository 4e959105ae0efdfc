// Logs go to stderr, one line per state change: a constant message, then fields. Never log payloads, header values,
// passwords or connection strings.
//
//   log::warn("cannot deliver, retries", {{"subscription", name}, {"reason", error.text()}});
#pragma once

#include <initializer_list>
#include <string>

#include "base/log_line.hpp"

namespace outbox::log {

enum class Format { text, json };

/// Call once at start. Without it, warnings and errors go to stderr as text.
void configure(const std::string& level, Format format);

using Fields = std::initializer_list<Field>;

void debug(Constant message, Fields fields = {});
void info(Constant message, Fields fields = {});
/// A person may have to act.
void warn(Constant message, Fields fields = {});
/// A person must act.
void error(Constant message, Fields fields = {});

}  // namespace outbox::log
