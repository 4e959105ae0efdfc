#include "sink/nats/config.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "sink/login_settings.hpp"
#include "sink/nats/error_map.hpp"
#include "sink/nats/message.hpp"
#include "sink/nats/nats_sink.hpp"
#include "sink/template_example.hpp"

namespace outbox::sink::nats {
namespace {

using namespace std::chrono_literals;

constexpr Scheme kSchemes[] = {{.name = "nats", .default_port = 4222},
                               {.name = "tls", .default_port = 4222}};

/// Before 3.8 a client whose limit passes while it waits for the answer to CONNECT goes on reading
/// and uses a whole core. A limit that never passes lets it wait. (Its clock may be set; the number
/// of milliseconds must fit into 31 bits.)
constexpr bool kKeepsLimit = NATS_VERSION_NUMBER >= 0x030800;
constexpr std::chrono::milliseconds kNever = std::chrono::hours(24 * 20);

SettingRows<NatsSettings> rows() {
  using S = NatsSettings;
  return joined<S>({
      {{"url", &S::url, Traits{.required = true, .secret = true},
        "The server, nats://host:port or tls://host:port; several of a cluster with commas."}},
      login_rows<S>(),
      tls_rows<S>("Certificate authorities to trust besides the system's, as a file in PEM."),
      {{"stream", &S::stream,
        "The stream that must take the events; another one refuses them. It is checked when the sink is opened. Empty: any that takes the subject."},
       {"token", &S::token, Traits{.secret = true}, "Instead of user and password."},
       {"credentials_file", &S::credentials_file, Traits{.type = SettingType::path},
        "A file with the user's JWT and NKey seed (.creds), instead of user and password."},
       {"domain", &S::domain, "The JetStream domain of the stream."},
       {"inbox_prefix", &S::inbox_prefix,
        "What the subjects begin with on which answers come, for users whose rights are limited."},
       {"connect_timeout", &S::connect_timeout, Traits{.range = {500ms, 1h}},
        "How long to wait for a connection, over all servers of url."},
       {"deadline", &S::deadline, Traits{.range = {1s, 1h}},
        "An event that is not confirmed within this time is sent again; without any answer the connection counts as lost."},
       {"max_in_flight", &S::max_in_flight, Traits{.range = {1, 100'000}},
        "Events sent and not yet confirmed. More may help when the server is far away."}},
  });
}

void check_login(const NatsSettings& s, const std::vector<Endpoint>& servers, FieldErrors& errors) {
  bool in_url = false;
  for (const Endpoint& server : servers) in_url = in_url || !server.username.empty();
  const int ways = (s.username.empty() ? 0 : 1) + (s.token.empty() ? 0 : 1) +
                   (s.credentials_file.empty() ? 0 : 1);
  if (ways > 1) {
    errors.add({"nats.credentials_file", "is one of several ways to log in",
                "set only one of username, token and credentials_file"});
  }
  if (in_url && (!s.token.empty() || !s.credentials_file.empty())) {
    errors.add({"nats.url", "has a user, and there is another way to log in",
                "remove the user, or token and credentials_file"});
  }
  if (!s.password.empty() && s.username.empty())
    errors.add({"nats.password", "is set without username", "set nats.username"});
}

void check_names(const NatsSettings& s, FieldErrors& errors) {
  if (const auto wrong = wrong_name(s.stream); !s.stream.empty() && !wrong.empty())
    errors.add({"nats.stream", std::string(wrong), "it is the stream's name, not its subject"});
  if (const auto wrong = wrong_name(s.domain); !s.domain.empty() && !wrong.empty())
    errors.add({"nats.domain", std::string(wrong)});
  if (const auto wrong = wrong_subject(s.inbox_prefix); !wrong.empty()) {
    errors.add({"nats.inbox_prefix", std::string(wrong), "such as _INBOX or _INBOX_outbox"});
  } else if (s.inbox_prefix.size() > kMostInboxPrefixBytes) {
    errors.add(
        {"nats.inbox_prefix", fmt::format("is longer than {} bytes", kMostInboxPrefixBytes)});
  }
}

void check(const NatsSettings& settings, FieldErrors& errors) {
  const auto servers = parse_servers(settings, errors);
  check_login(settings, servers, errors);
  check_names(settings, errors);
  check_tls("nats", settings.tls, errors);
}

void check_use(const NatsSettings& /*settings*/, const SubscriptionSpec& spec,
               FieldErrors& errors) {
  const std::string_view wrong = wrong_subject(with_fields_as_x(spec.topic));
  if (wrong.empty()) return;
  errors.add(
      {"topic", fmt::format("is not a subject that NATS can publish to: it {}", wrong),
       "parts between dots, without spaces and wildcards, such as orders.{event_type|kebab}"});
}

void check_here(const NatsSettings& settings, FieldErrors& errors) {
  const std::string& file = settings.credentials_file;
  if (!file.empty() && ::access(file.c_str(), R_OK) != 0) {
    errors.add({"nats.credentials_file", file + ": " + std::generic_category().message(errno),
                "name a file that the relay's user can read"});
  }
}

Result<std::unique_ptr<NetworkSink>> make(NatsSettings settings, const SubscriptionSpec& spec) {
  OUTBOX_TRY(auto servers, read_valid(parse_servers, settings));
  return std::make_unique<NatsSink>(spec.name, std::move(settings), std::move(servers));
}

/// Calls functions of the client until one fails.
class Setup {
 public:
  template <class... Given, class... Passed>
  Setup& set(natsStatus (*function)(natsOptions*, Given...), Passed... values) {
    if (status_ == NATS_OK) status_ = function(options_.get(), values...);
    return *this;
  }
  Setup() {
    natsOptions* made = nullptr;
    status_ = natsOptions_Create(&made);
    options_.reset(made);
  }
  [[nodiscard]] natsStatus status() const { return status_; }
  [[nodiscard]] OptionsHandle take() { return std::move(options_); }

 private:
  natsStatus status_{NATS_OK};
  OptionsHandle options_;
};

void log_in(Setup& setup, const NatsSettings& s, const Endpoint& server) {
  const std::string& user = s.username.empty() ? server.username : s.username;
  const std::string& password = s.username.empty() ? server.password : s.password;
  if (!s.credentials_file.empty()) {
    setup.set(natsOptions_SetUserCredentialsFromFiles, s.credentials_file.c_str(), nullptr);
  } else if (!s.token.empty()) {
    setup.set(natsOptions_SetToken, json_escaped(s.token).c_str());
  } else if (!user.empty() && password.empty() && s.username.empty()) {
    // All clients of NATS understand nats://TOKEN@host this way.
    setup.set(natsOptions_SetToken, json_escaped(user).c_str());
  } else if (!user.empty()) {
    setup.set(natsOptions_SetUserInfo, json_escaped(user).c_str(), json_escaped(password).c_str());
  }
}

void secure(Setup& setup, const NatsSettings& s, const Endpoint& server) {
  if (server.scheme == "tls") setup.set(natsOptions_SetSecure, true);
  // The name is checked with nats:// too, because the server may ask for TLS.
  setup.set(natsOptions_SetExpectedHostname, server.host.c_str());
  if (!s.tls.ca.empty()) setup.set(natsOptions_LoadCATrustedCertificates, s.tls.ca.c_str());
  if (!s.tls.certificate.empty()) {
    setup.set(natsOptions_LoadCertificatesChain, s.tls.certificate.c_str(), s.tls.key.c_str());
  }
  if (s.tls.insecure) setup.set(natsOptions_SkipServerVerification, true);
}

}  // namespace

std::string json_escaped(const std::string& text) {
  const std::string quoted = write_json(nlohmann::json(text));
  return quoted.substr(1, quoted.size() - 2);
}

std::vector<Endpoint> parse_servers(const NatsSettings& settings, FieldErrors& errors) {
  auto servers = parse_endpoints("nats.url", settings.url, kSchemes, errors);
  for (const Endpoint& server : servers) {
    if (!server.path.empty())
      errors.add(
          {"nats.url", "has a path", "write nats://host:port; the stream has its own setting"});
  }
  return servers;
}

Result<OptionsHandle> make_options(const NatsSettings& settings, const Endpoint& server,
                                   const std::string& address) {
  Setup setup;
  const auto limit = kKeepsLimit ? settings.connect_timeout : kNever;
  setup.set(natsOptions_SetURL, fmt::format("nats://{}:{}", address, server.port).c_str())
      .set(natsOptions_SetName, "outbox")
      .set(natsOptions_SetTimeout, std::int64_t{limit.count()})
      // A lost connection is not repaired: what the client kept for it would be sent later, perhaps
      // by a relay that may not send any more.
      .set(natsOptions_SetAllowReconnect, false)
      // Writes go to the socket at once, without a thread that flushes.
      .set(natsOptions_SetSendAsap, true)
      // The sink watches the connection itself: TCP_USER_TIMEOUT, keep-alive, deadline.
      .set(natsOptions_SetPingInterval, std::int64_t{0})
      .set(natsOptions_SetIgnoreDiscoveredServers, true)
      // This deadline matters only with TLS, where the client waits while it writes.
      .set(natsOptions_SetWriteDeadline, std::int64_t{settings.deadline.count()})
      .set(natsOptions_SetNoEcho, true);
  log_in(setup, settings, server);
  secure(setup, settings, server);
  if (setup.status() == NATS_OK) return setup.take();
  return fail(describe(setup.status(), server.shown(), last_words(setup.status())));
}

std::string api_prefix(const NatsSettings& settings) {
  return settings.domain.empty() ? "$JS.API" : "$JS." + settings.domain + ".API";
}

const Declaration<NatsSettings>& declaration() {
  static const Declaration<NatsSettings> nats{.name = "nats",
                                              .help = "publishes to NATS JetStream with cnats",
                                              .rows = rows(),
                                              .check = check,
                                              .check_use = check_use,
                                              .check_here = check_here,
                                              .make_network = make};
  return nats;
}

SinkKind kind() { return make_kind(declaration()); }

}  // namespace outbox::sink::nats
