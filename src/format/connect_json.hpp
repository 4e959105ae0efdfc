// JSON as Kafka Connect's JsonConverter writes it after Debezium's event router has expanded the
// payload: without spaces, with decimals as Java writes a double, without null members and empty
// arrays unless asked for. Compared with captured messages. Pure.
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
/// Appends the text in quotes, with control characters escaped as Jackson does.
void append_connect_string(std::string& out, std::string_view text);
/// The number as Double.toString() of Java 19 and later writes it.
[[nodiscard]] std::string java_double(double number);

}  // namespace outbox::format
