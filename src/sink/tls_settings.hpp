// The settings tls_ca, tls_certificate, tls_key and insecure_tls, for settings with a member `tls`.
#pragma once

#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "base/setting.hpp"

namespace outbox::sink {

struct TlsSettings {
  std::string ca{};  ///< The path of a file in PEM, as are the next two.
  std::string certificate{};
  std::string key{};
  bool insecure{false};
};

inline constexpr const char* kTlsCaHelp =
    "Certificate authorities to trust instead of the system's, as a file in PEM.";

template <class Settings>
SettingRows<Settings> tls_rows(const char* ca_help = kTlsCaHelp) {
  return {
      {"tls_ca", &Settings::tls, &TlsSettings::ca, Traits{.type = SettingType::path}, ca_help},
      {"tls_certificate", &Settings::tls, &TlsSettings::certificate,
       Traits{.type = SettingType::path}, "A client certificate, as a file in PEM."},
      {"tls_key", &Settings::tls, &TlsSettings::key, Traits{.type = SettingType::path},
       "Its key, as a file in PEM."},
      {"insecure_tls", &Settings::tls, &TlsSettings::insecure,
       "Does not check the server's certificate; for experiments."},
  };
}

/// A certificate requires its key, and the other way round. `sink` is "http", say.
void check_tls(const std::string& sink, const TlsSettings& tls, FieldErrors& errors);
/// Adds an error for each setting of TLS, which the sink does not use. `hint`: how to enable it.
void check_no_tls(const std::string& sink, const TlsSettings& tls, const std::string& hint,
                  FieldErrors& errors);
/// Adds an error for each file that cannot be read here.
void check_tls_here(const std::string& sink, const TlsSettings& tls, FieldErrors& errors);

}  // namespace outbox::sink
