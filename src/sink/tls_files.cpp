#include "sink/tls_files.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace outbox::sink {

void check_key_pair(const std::string& sink, const TlsFiles& files, FieldErrors& errors) {
  if (files.certificate.empty() == files.key.empty()) return;
  const bool no_key = files.key.empty();
  errors.add({sink + (no_key ? ".tls_key" : ".tls_certificate"), "is missing",
              sink + (no_key ? ".tls_certificate is set" : ".tls_key is set")});
}

void check_readable(std::string field, const std::string& path, FieldErrors& errors) {
  if (path.empty() || ::access(path.c_str(), R_OK) == 0) return;
  errors.add({std::move(field), path + ": " + std::generic_category().message(errno),
              "name a file that the relay's user can read"});
}

void check_readable(const std::string& sink, const TlsFiles& files, FieldErrors& errors) {
  check_readable(sink + ".tls_ca", files.ca, errors);
  check_readable(sink + ".tls_certificate", files.certificate, errors);
  check_readable(sink + ".tls_key", files.key, errors);
}

}  // namespace outbox::sink
