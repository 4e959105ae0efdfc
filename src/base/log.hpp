// Logs go to stderr, one line per state change: a constant message and then fields. Payloads,
// header values, passwords and connection strings must never be logged.
//
//   log::warn("cannot deliver, retries", {{"subscription", name}, {"reason", error.text()}});
#pragma once

#include <initializer_list>
#include <string>

#include "base/log_line.hpp"

namespace outbox::log {

enum class Format { text, json };

/// Must be called once at start. Without it, warnings and errors go to stderr as text.
void configure(const std::string& level, Format format);

using Fields = std::initializer_list<Field>;

void debug(Constant message, Fields fields = {});
void info(Constant message, Fields fields = {});
/// A warning: a person may have to act.
void warn(Constant message, Fields fields = {});
/// An error: a person must act.
void error(Constant message, Fields fields = {});

}  // namespace outbox::log
