// Certificates for tests with TLS.
#pragma once

#include <optional>
#include <string>

#include "support/temp_dir.hpp"

namespace outbox::test {

/// A certificate that signs itself, and its key.
struct Certificate {
  std::string file;
  std::string key;
};
/// Makes a certificate for 127.0.0.1 and localhost, or other names. Returns nullopt if there is no
/// openssl.
[[nodiscard]] std::optional<Certificate> make_certificate(
    const TempDir& folder, const std::string& names = "IP:127.0.0.1,DNS:localhost");

}  // namespace outbox::test
