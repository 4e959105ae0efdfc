// The settings of a NATS sink, and the options of the client made from them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "sink/endpoint.hpp"
#include "sink/kind.hpp"
#include "sink/nats/handle.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink::nats {

/// The prefix of CloudEvents attributes in headers: NATS protocol binding, 3.1.3.
inline constexpr std::string_view kAttributePrefix = "ce-";

struct NatsSettings {
  std::string url;
  std::string stream;
  std::string username;
  std::string password;
  std::string token;
  std::string credentials_file;
  TlsSettings tls{};
  std::string domain;
  std::string inbox_prefix{"_INBOX"};
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds deadline{10'000};
  std::size_t max_in_flight{4000};
};

/// The rows of the settings and their checks.
[[nodiscard]] const Declaration<NatsSettings>& declaration();

/// Adds an error, and returns no address, if one is wrong.
[[nodiscard]] std::vector<Endpoint> parse_servers(const NatsSettings& settings,
                                                  FieldErrors& errors);

/// The options for one connection to this server at this numeric address. Reads the files.
[[nodiscard]] Result<OptionsHandle> make_options(const NatsSettings& settings,
                                                 const Endpoint& server,
                                                 const std::string& address);

/// What the subjects of JetStream's API begin with: "$JS.API".
[[nodiscard]] std::string api_prefix(const NatsSettings& settings);
/// The text escaped such that the client, which copies it into JSON, sends it unchanged.
[[nodiscard]] std::string json_escaped(const std::string& text);

}  // namespace outbox::sink::nats
