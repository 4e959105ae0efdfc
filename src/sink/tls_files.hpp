// Checks of the settings that name files for TLS, which are alike in all sinks.
#pragma once

#include <string>

#include "base/field_error.hpp"

namespace outbox::sink {

/// The settings tls_ca, tls_certificate and tls_key.
struct TlsFiles {
  const std::string& ca;
  const std::string& certificate;
  const std::string& key;
};

/// A certificate needs its key, and the other way round.
void check_key_pair(const std::string& sink, const TlsFiles& files, FieldErrors& errors);
/// That this user can read the file, if one is named.
void check_readable(std::string field, const std::string& path, FieldErrors& errors);
void check_readable(const std::string& sink, const TlsFiles& files, FieldErrors& errors);

}  // namespace outbox::sink
