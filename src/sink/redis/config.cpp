#include "sink/redis/config.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <system_error>
#include <utility>

#include "sink/login_settings.hpp"
#include "sink/redis/redis_sink.hpp"

namespace outbox::sink::redis {
namespace {

constexpr std::uint16_t kPort = 6379;
constexpr Scheme kSchemes[] = {{"redis", kPort}, {"rediss", kPort}};

std::vector<SettingRow<RedisSettings>> url_rows() {
  return {
      {{.name = "url",
        .type = SettingType::url,
        .help =
            "The server: redis://host:port/database, rediss:// for TLS. Several with commas: the first one that is a master is used.",
        .required = true,
        .secret = true},
       [](RedisSettings& s) -> Slot { return &s.url; }},
  };
}

std::vector<SettingRow<RedisSettings>> stream_rows() {
  constexpr std::uint64_t kSecond = 1000;
  constexpr std::uint64_t kHour = 3600 * kSecond;
  return {
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
        .most = std::uint64_t{30} * 24 * kHour},
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

std::vector<SettingRow<RedisSettings>> rows() {
  return joined(
      {url_rows(),
       login_rows<RedisSettings>("Instead of the one in url. Without one: the default user."),
       tls_rows<RedisSettings>(), stream_rows()});
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
  check_tls_here("redis", settings.tls, errors);
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
                       .tls = settings.tls,
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
  check_login("redis", settings.username, settings.password, options.endpoints, errors);
  check_tls("redis", settings.tls, errors);
  if (!any_tls(options.endpoints))
    check_no_tls("redis", settings.tls, "begin redis.url with rediss://", errors);
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
