// The address of a server in a sink's settings: scheme://[user[:password]@]host[:port][/path], several with commas.
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
  std::string username;  ///< Decoded, as the password is. Empty: none given.
  std::string password;
  std::string host;  ///< IPv6 without brackets.
  std::uint16_t port{0};
  std::string path;  ///< Decoded, without the first slash.

  /// For logs and errors: without username and password.
  [[nodiscard]] std::string shown() const;
  /// Only this machine can listen in.
  [[nodiscard]] bool is_loopback() const;
};

/// A scheme that a sink speaks.
struct Scheme {
  std::string_view name;
  std::uint16_t default_port{0};
};

/// Complains under the field's name and returns none when one of them is wrong. An error never quotes the text, which may have a password.
[[nodiscard]] std::vector<Endpoint> parse_endpoints(const std::string& field, std::string_view text,
                                                    std::span<const Scheme> schemes,
                                                    FieldErrors& errors);

}  // namespace outbox::sink
