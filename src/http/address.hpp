// Where an HTTP listener listens: "127.0.0.1:9464", "[::1]:9464", "localhost:9464". Pure.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::http {

struct Address {
  std::string host;  ///< An address or "localhost", without brackets.
  int port{0};       ///< 0: any free port.

  /// Whether only programs of this machine can connect.
  [[nodiscard]] bool is_loopback() const;
  /// As it stands in a URL: "[::1]:9464".
  [[nodiscard]] std::string text() const;
};

[[nodiscard]] Result<Address> parse_address(std::string_view text);

/// Whether the Host header of a request names this machine. A page of a foreign site whose name was
/// made to resolve to the loopback address ("DNS rebinding") sends its own name.
[[nodiscard]] bool is_loopback_host(std::string_view host);

}  // namespace outbox::http
