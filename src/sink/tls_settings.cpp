#include "sink/tls_settings.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace outbox::sink {

void check_tls(const std::string& sink, const TlsSettings& tls, FieldErrors& errors) {
  if (tls.certificate.empty() == tls.key.empty()) return;
  const std::string certificate = sink + ".tls_certificate";
  const std::string key = sink + ".tls_key";
  const bool no_key = tls.key.empty();
  errors.add({no_key ? key : certificate, "is missing", (no_key ? certificate : key) + " is set"});
}

void check_no_tls(const std::string& sink, const TlsSettings& tls, const std::string& hint,
                  FieldErrors& errors) {
  const std::pair<const char*, bool> given[] = {{"tls_ca", !tls.ca.empty()},
                                                {"tls_certificate", !tls.certificate.empty()},
                                                {"tls_key", !tls.key.empty()},
                                                {"insecure_tls", tls.insecure}};
  for (const auto& [name, set] : given) {
    if (set) errors.add({sink + "." + name, "has no effect without TLS", hint});
  }
}

void check_tls_here(const std::string& sink, const TlsSettings& tls, FieldErrors& errors) {
  const std::pair<const char*, const std::string&> files[] = {
      {"tls_ca", tls.ca}, {"tls_certificate", tls.certificate}, {"tls_key", tls.key}};
  for (const auto& [name, path] : files) {
    if (!path.empty() && ::access(path.c_str(), R_OK) != 0)
      errors.add({sink + "." + name, path + ": " + std::generic_category().message(errno),
                  "name a file that the relay's user can read"});
  }
}

}  // namespace outbox::sink
