// The settings of a Redis server and its connection; a sink's settings derive from ServerSettings.
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
  std::string username;  ///< Replaces the one in url.
  std::string password;
  TlsSettings tls{};
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(5)};
  std::chrono::milliseconds deadline{std::chrono::seconds(10)};
  std::size_t max_in_flight{1000};
  std::size_t wait_replicas{0};  ///< 0 sends no WAIT.
  std::chrono::milliseconds wait_timeout{std::chrono::seconds(1)};
  std::size_t max_message_bytes{0};  ///< 0 allows what the server takes.
};

/// The checked settings.
struct ServerOptions : ServerSettings {
  std::vector<Endpoint> endpoints;  ///< The addresses of url; a path is the number of the database.
};

/// Adds an error for what is wrong. `sink` is "redis", say; `place` is where the settings put the
/// place of events, if it is not in the address.
[[nodiscard]] ServerOptions parse_options(const std::string& sink, const ServerSettings& settings,
                                          const std::string& place, FieldErrors& errors);

template <class Settings>
SettingRows<Settings> server_rows() {
  using namespace std::chrono_literals;
  return joined<Settings>({
      {{"url", &Settings::url, Traits{.type = SettingType::url, .required = true, .secret = true},
        "The server: redis://host:port/database, rediss:// for TLS. Several with commas: the first one that is a master is used."}},
      login_rows<Settings>("Instead of the one in url. Without one: the default user."),
      tls_rows<Settings>(),
      {{"connect_timeout", &Settings::connect_timeout, Traits{.range = {100ms, 1min}},
        "For connecting and logging in, for all addresses together."},
       {"deadline", &Settings::deadline, Traits{.range = {1s, 1h}},
        "Without an answer for so long the connection counts as lost."},
       {"max_in_flight", &Settings::max_in_flight, Traits{.range = {1, 100'000}},
        "Events sent and not yet confirmed."},
       {"wait_replicas", &Settings::wait_replicas, Traits{.range = {0, 100}},
        "An event is acked when so many replicas have it, too (WAIT). 0: none."},
       {"wait_timeout", &Settings::wait_timeout, Traits{.range = {1ms, 1h}},
        "How long the replicas may take."},
       {"max_message_bytes", &Settings::max_message_bytes,
        Traits{.type = SettingType::size, .range = {0, std::uint64_t{1} << 30U}},
        "Larger messages are rejected. 0: as the server is configured, if it says so (CONFIG GET)."}},
  });
}

}  // namespace outbox::sink::hiredis
