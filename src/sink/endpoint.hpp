// The address of a server in a sink's settings: scheme://[user[:password]@]host[:port][/path].
// Commas separate several addresses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_error.hpp"

namespace outbox::sink {

struct Endpoint {
  std::string scheme;
  std::string username;  ///< Decoded, as the password is; empty if not given.
  std::string password;
  std::string host;  ///< An IPv6 address has no brackets.
  std::uint16_t port{0};
  std::string path;  ///< Decoded, without the first slash.

  /// The address for logs and errors, without username and password.
  [[nodiscard]] std::string shown() const;
  /// Whether only this machine can listen in.
  [[nodiscard]] bool is_loopback() const;
};

/// A scheme that a sink speaks.
struct Scheme {
  std::string_view name;
  std::uint16_t default_port{0};
};

/// Adds an error under the field's name and returns no endpoint when an address is wrong. The error
/// never quotes the text, which may contain a password.
[[nodiscard]] std::vector<Endpoint> parse_endpoints(const std::string& field, std::string_view text,
                                                    std::span<const Scheme> schemes,
                                                    FieldErrors& errors);

}  // namespace outbox::sink
