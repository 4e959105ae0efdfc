#include "sink/redis/config.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "sink/redis/redis_sink.hpp"

namespace outbox::sink::redis {
namespace {

constexpr std::uint16_t kPort = 6379;
constexpr Scheme kSchemes[] = {{"redis", kPort}, {"rediss", kPort}};

std::vector<SettingRow<RedisSettings>> rows() {
  constexpr std::uint64_t kSecond = 1000;
  constexpr std::uint64_t kHour = 3600 * kSecond;
  return {
      {{.name = "url",
        .type = SettingType::url,
        .help =
            "The server: redis://host:port/database, rediss:// for TLS. Several with commas: the first one that is a master is used.",
        .required = true,
        .secret = true},
       [](RedisSettings& s) -> Slot { return &s.url; }},
      {{.name = "username", .help = "Instead of the one in url. Without one: the default user."},
       [](RedisSettings& s) -> Slot { return &s.username; }},
      {{.name = "password", .help = "Instead of the one in url.", .secret = true},
       [](RedisSettings& s) -> Slot { return &s.password; }},
      {{.name = "tls_ca",
        .type = SettingType::path,
        .help = "The certificate authorities of the server, in PEM. Empty: the system's."},
       [](RedisSettings& s) -> Slot { return &s.tls_ca; }},
      {{.name = "tls_certificate",
        .type = SettingType::path,
        .help = "A client certificate, in PEM, with tls_key."},
       [](RedisSettings& s) -> Slot { return &s.tls_certificate; }},
      {{.name = "tls_key", .type = SettingType::path, .help = "Its private key, in PEM."},
       [](RedisSettings& s) -> Slot { return &s.tls_key; }},
      {{.name = "insecure_tls",
        .type = SettingType::boolean,
        .help = "Does not check the server's certificate; for experiments."},
       [](RedisSettings& s) -> Slot { return &s.insecure_tls; }},
      {{.name = "connect_timeout",
        .type = SettingType::duration,
        .help = "For connecting and logging in, for all addresses together.",
        .least = 100,
        .most = 60 * kSecond},
       [](RedisSettings& s) -> Slot { return &s.connect_timeout; }},
      {{.name = "deadline",
        .type = SettingType::duration,
        .help = "Without an answer for so long the connection counts as lost.",
        .least = kSecond,
        .most = kHour},
       [](RedisSettings& s) -> Slot { return &s.deadline; }},
      {{.name = "max_in_flight",
        .type = SettingType::count,
        .help = "Events sent and not yet confirmed.",
        .least = 1,
        .most = 100'000},
       [](RedisSettings& s) -> Slot { return &s.max_in_flight; }},
      {{.name = "dedup_window",
        .type = SettingType::duration,
        .help =
            "An event that is sent again within this time is not added again. 0: it is. Each event of that time takes memory of the server.",
        .least = 0,
        .most = 30 * 24 * kHour},
       [](RedisSettings& s) -> Slot { return &s.dedup_window; }},
      {{.name = "max_length",
        .type = SettingType::count,
        .help =
            "Removes the oldest entries of a stream, read or not, when it has more than about so many. 0: none.",
        .least = 0,
        .most = 1'000'000'000'000},
       [](RedisSettings& s) -> Slot { return &s.max_length; }},
      {{.name = "wait_replicas",
        .type = SettingType::count,
        .help = "An event is acked when so many replicas have it, too (WAIT). 0: none.",
        .least = 0,
        .most = 100},
       [](RedisSettings& s) -> Slot { return &s.wait_replicas; }},
      {{.name = "wait_timeout",
        .type = SettingType::duration,
        .help = "How long the replicas may take.",
        .least = 1,
        .most = kHour},
       [](RedisSettings& s) -> Slot { return &s.wait_timeout; }},
      {{.name = "max_message_bytes",
        .type = SettingType::size,
        .help =
            "Larger messages are rejected. 0: as the server is configured, if it says so (CONFIG GET).",
        .least = 0,
        .most = std::uint64_t{1} << 30U},
       [](RedisSettings& s) -> Slot { return &s.max_message_bytes; }},
  };
}

bool is_database(std::string_view path) {
  unsigned number = 0;
  const char* const end = path.data() + path.size();
  const auto [stop, error] = std::from_chars(path.data(), end, number);
  return path.empty() || (error == std::errc() && stop == end);
}

bool any_tls(const std::vector<Endpoint>& endpoints) {
  return std::any_of(endpoints.begin(), endpoints.end(),
                     [](const Endpoint& endpoint) { return endpoint.scheme == "rediss"; });
}

void check_endpoints(const std::vector<Endpoint>& endpoints, FieldErrors& errors) {
  for (const Endpoint& endpoint : endpoints) {
    if (!is_database(endpoint.path)) {
      errors.add({"redis.url", "has a path that is not the number of a database",
                  "redis://host:6379/0; the name of the stream is the subscription's topic"});
    }
  }
}

void check_login(const RedisSettings& settings, const std::vector<Endpoint>& endpoints,
                 FieldErrors& errors) {
  const bool no_password = settings.password.empty();
  if (!settings.username.empty() && no_password &&
      std::any_of(endpoints.begin(), endpoints.end(),
                  [](const Endpoint& endpoint) { return endpoint.password.empty(); }))
    errors.add({"redis.username", "is given without a password", "set redis.password"});
  for (const Endpoint& endpoint : endpoints) {
    if (!endpoint.username.empty() && endpoint.password.empty() && no_password)
      errors.add({"redis.url", "has a username and no password", "set redis.password"});
  }
}

void check_tls(const RedisSettings& settings, bool secure, FieldErrors& errors) {
  if (settings.tls_certificate.empty() != settings.tls_key.empty()) {
    errors.add({settings.tls_key.empty() ? "redis.tls_key" : "redis.tls_certificate", "is missing",
                "a client certificate needs tls_certificate and tls_key"});
  }
  if (secure) return;
  const std::pair<const char*, bool> given[] = {
      {"redis.tls_ca", !settings.tls_ca.empty()},
      {"redis.tls_certificate", !settings.tls_certificate.empty()},
      {"redis.tls_key", !settings.tls_key.empty()},
      {"redis.insecure_tls", settings.insecure_tls}};
  for (const auto& [field, set] : given) {
    if (set) errors.add({field, "has no effect without TLS", "begin redis.url with rediss://"});
  }
}

void check_waiting(const RedisSettings& settings, FieldErrors& errors) {
  if (settings.wait_replicas == 0 || 2 * settings.wait_timeout <= settings.deadline) return;
  errors.add({"redis.wait_timeout", "is longer than half of redis.deadline",
              "while the server waits for its replicas it answers nothing else: raise deadline"});
}

void check(const RedisSettings& settings, FieldErrors& errors) {
  (void)options_of(settings, errors);
}

void check_use(const RedisSettings& /*settings*/, const SubscriptionSpec& spec,
               FieldErrors& errors) {
  if (spec.topic.empty()) errors.add({"topic", "is empty", "it is the name of the stream"});
}

void check_here(const RedisSettings& settings, FieldErrors& errors) {
  const std::pair<const char*, const std::string*> files[] = {
      {"redis.tls_ca", &settings.tls_ca},
      {"redis.tls_certificate", &settings.tls_certificate},
      {"redis.tls_key", &settings.tls_key}};
  for (const auto& [field, path] : files) {
    std::error_code error;
    if (!path->empty() && !std::filesystem::is_regular_file(*path, error))
      errors.add({field, "there is no file " + *path, "check the path"});
  }
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::make
Result<std::unique_ptr<Sink>> make(RedisSettings settings) {
  FieldErrors errors;
  RedisOptions options = options_of(settings, errors);
  if (auto status = errors.status(); !status) return pass(status);
  return std::make_unique<RedisSink>(std::move(options));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::inspect
Result<Inspection> inspect(RedisSettings settings, const SubscriptionSpec&) {
  FieldErrors errors;
  const RedisOptions options = options_of(settings, errors);
  if (auto status = errors.status(); !status) return pass(status);
  OUTBOX_TRY(Session session, open_session(options));
  return std::move(session.inspection);
}

}  // namespace

RedisOptions options_of(const RedisSettings& settings, FieldErrors& errors) {
  RedisOptions options{.endpoints = parse_endpoints("redis.url", settings.url, kSchemes, errors),
                       .username = settings.username,
                       .password = settings.password,
                       .tls = {.ca = settings.tls_ca,
                               .certificate = settings.tls_certificate,
                               .key = settings.tls_key,
                               .insecure = settings.insecure_tls},
                       .connect_timeout = settings.connect_timeout,
                       .deadline = settings.deadline,
                       .max_in_flight = settings.max_in_flight,
                       .dedup_window = settings.dedup_window,
                       .max_length = settings.max_length,
                       .wait_replicas = settings.wait_replicas,
                       .wait_timeout = settings.wait_timeout,
                       .max_message_bytes = settings.max_message_bytes};
  check_waiting(settings, errors);
  if (options.endpoints.empty()) return options;
  check_endpoints(options.endpoints, errors);
  check_login(settings, options.endpoints, errors);
  check_tls(settings, any_tls(options.endpoints), errors);
  return options;
}

SinkKind kind() {
  return kind_of<RedisSettings>({.name = "redis",
                                 .help = "adds events to Redis Streams, each once within a window",
                                 .rows = rows(),
                                 .check = check,
                                 .check_use = check_use,
                                 .check_here = check_here,
                                 .make = make,
                                 .inspect = inspect});
}

}  // namespace outbox::sink::redis
