// JSON as Kafka Connect's JsonConverter writes it after Debezium's event router has expanded the payload: without spaces, decimals as
// Java writes a double, members that are null and empty arrays left out unless asked for. Compared with captured messages. Pure.
#pragma once

#include <string>
#include <string_view>

namespace outbox::format {

struct ConnectJson {
  bool keep_nulls{false};
  bool keep_empty_arrays{false};
};

/// Appends the value; `json` must be one JSON value.
void append_connect_json(std::string& out, std::string_view json, const ConnectJson& rules);
/// In quotes; control characters as Jackson escapes them.
void append_connect_string(std::string& out, std::string_view text);
/// As Double.toString() of Java 19 and later.
[[nodiscard]] std::string java_double(double number);

}  // namespace outbox::format
