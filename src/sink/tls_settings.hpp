// The settings tls_ca, tls_certificate, tls_key and insecure_tls, for sinks whose settings have a member `tls`.
#pragma once

#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "base/setting.hpp"

namespace outbox::sink {

struct TlsSettings {
  std::string ca{};  ///< Paths of files in PEM, as the next two.
  std::string certificate{};
  std::string key{};
  bool insecure{false};
};

inline constexpr const char* kTlsCaHelp =
    "Certificate authorities to trust instead of the system's, as a file in PEM.";

template <class Settings>
std::vector<SettingRow<Settings>> tls_rows(const char* ca_help = kTlsCaHelp) {
  return {
      {{.name = "tls_ca", .type = SettingType::path, .help = ca_help},
       [](Settings& s) -> Slot { return &s.tls.ca; }},
      {{.name = "tls_certificate",
        .type = SettingType::path,
        .help = "A client certificate, as a file in PEM."},
       [](Settings& s) -> Slot { return &s.tls.certificate; }},
      {{.name = "tls_key", .type = SettingType::path, .help = "Its key, as a file in PEM."},
       [](Settings& s) -> Slot { return &s.tls.key; }},
      {{.name = "insecure_tls",
        .type = SettingType::boolean,
        .help = "Does not check the server's certificate; for experiments."},
       [](Settings& s) -> Slot { return &s.tls.insecure; }},
  };
}

/// A certificate and its key go together. `sink`: "http".
void check_tls(const std::string& sink, const TlsSettings& tls, FieldErrors& errors);
/// Without TLS none of them is set. `hint`: how TLS is asked for.
void check_no_tls(const std::string& sink, const TlsSettings& tls, const std::string& hint,
                  FieldErrors& errors);
/// The files can be read here.
void check_tls_here(const std::string& sink, const TlsSettings& tls, FieldErrors& errors);

}  // namespace outbox::sink
