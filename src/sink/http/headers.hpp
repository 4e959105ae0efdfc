// Which headers of a message can be sent as header fields of HTTP. Pure.
#pragma once

#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>

namespace outbox::sink::http {

/// What this sink sets itself, so that no message may.
struct OwnHeaders {
  bool authorization{false};
  bool idempotency_key{false};
};

/// Why the message must be refused because of this header; none: it can be sent. Values may have any bytes but control characters: what
/// is not ASCII goes as it is (obs-text, RFC 9110, 5.5).
[[nodiscard]] std::optional<std::string> fault_of(const HeaderView& header, const OwnHeaders& own);

/// "name: value", as libcurl wants it; "name;" when the value is empty.
[[nodiscard]] std::string header_line(std::string_view name, std::string_view value);

}  // namespace outbox::sink::http
