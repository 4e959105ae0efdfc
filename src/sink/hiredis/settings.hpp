// The settings of a Redis server and of the connection to it, for sinks whose settings are derived from ServerSettings.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "base/setting.hpp"
#include "sink/endpoint.hpp"
#include "sink/login_settings.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink::hiredis {

struct ServerSettings {
  std::string url;
  std::string username;
  std::string password;
  TlsSettings tls{};
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(5)};
  std::chrono::milliseconds deadline{std::chrono::seconds(10)};
  std::size_t max_in_flight{1000};
  std::size_t wait_replicas{0};
  std::chrono::milliseconds wait_timeout{std::chrono::seconds(1)};
  std::size_t max_message_bytes{0};
};

/// The settings, checked and taken apart.
struct ServerOptions {
  std::vector<Endpoint> endpoints;  ///< The path is the number of the database.
  std::string username;             ///< Instead of the one of the endpoint.
  std::string password;
  TlsSettings tls{};
  std::chrono::milliseconds connect_timeout{};
  std::chrono::milliseconds deadline{};
  std::size_t max_in_flight{0};
  std::size_t wait_replicas{0};  ///< 0: no WAIT.
  std::chrono::milliseconds wait_timeout{};
  std::size_t max_message_bytes{0};  ///< 0: what the server takes.
};

/// Complains about what is wrong. `sink`: "redis". `place`: where the place of events is set, if not in the address.
[[nodiscard]] ServerOptions options_of(const std::string& sink, const ServerSettings& settings,
                                       const std::string& place, FieldErrors& errors);

template <class Settings>
std::vector<SettingRow<Settings>> address_rows() {
  return {
      {{.name = "url",
        .type = SettingType::url,
        .help =
            "The server: redis://host:port/database, rediss:// for TLS. Several with commas: the first one that is a master is used.",
        .required = true,
        .secret = true},
       [](Settings& s) -> Slot { return &s.url; }},
  };
}

template <class Settings>
std::vector<SettingRow<Settings>> connection_rows() {
  constexpr std::uint64_t kSecond = 1000;
  constexpr std::uint64_t kHour = 3600 * kSecond;
  return {
      {{.name = "connect_timeout",
        .type = SettingType::duration,
        .help = "For connecting and logging in, for all addresses together.",
        .least = 100,
        .most = 60 * kSecond},
       [](Settings& s) -> Slot { return &s.connect_timeout; }},
      {{.name = "deadline",
        .type = SettingType::duration,
        .help = "Without an answer for so long the connection counts as lost.",
        .least = kSecond,
        .most = kHour},
       [](Settings& s) -> Slot { return &s.deadline; }},
      {{.name = "max_in_flight",
        .type = SettingType::count,
        .help = "Events sent and not yet confirmed.",
        .least = 1,
        .most = 100'000},
       [](Settings& s) -> Slot { return &s.max_in_flight; }},
      {{.name = "wait_replicas",
        .type = SettingType::count,
        .help = "An event is acked when so many replicas have it, too (WAIT). 0: none.",
        .least = 0,
        .most = 100},
       [](Settings& s) -> Slot { return &s.wait_replicas; }},
      {{.name = "wait_timeout",
        .type = SettingType::duration,
        .help = "How long the replicas may take.",
        .least = 1,
        .most = kHour},
       [](Settings& s) -> Slot { return &s.wait_timeout; }},
      {{.name = "max_message_bytes",
        .type = SettingType::size,
        .help =
            "Larger messages are rejected. 0: as the server is configured, if it says so (CONFIG GET).",
        .least = 0,
        .most = std::uint64_t{1} << 30U},
       [](Settings& s) -> Slot { return &s.max_message_bytes; }},
  };
}

template <class Settings>
std::vector<SettingRow<Settings>> server_rows() {
  return joined({address_rows<Settings>(),
                 login_rows<Settings>("Instead of the one in url. Without one: the default user."),
                 tls_rows<Settings>(), connection_rows<Settings>()});
}

}  // namespace outbox::sink::hiredis
