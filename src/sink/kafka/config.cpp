#include "sink/kafka/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace outbox::sink::kafka {
namespace {

/// What the no-gap rule and the promise of no loss need, and what a relay needs other than librdkafka's default.
constexpr std::pair<const char*, const char*> kOurs[] = {
    {"client.id", "outbox"},
    {"enable.idempotence", "true"},
    {"acks", "all"},
    {"enable.gapless.guarantee", "true"},
    {"message.timeout.ms",
     "0"},  // delivery_deadline instead: then everything is purged, not a message in the middle
    {"max.in.flight.requests.per.connection", "5"},
    {"socket.timeout.ms", "6000"},
    {"request.timeout.ms", "5000"},
    {"socket.connection.setup.timeout.ms", "10000"},
    {"socket.keepalive.enable", "true"},
    {"socket.nagle.disable", "true"},
    {"batch.size", "1000000"},
    {"compression.type", "lz4"},
    {"queue.buffering.max.messages", "100000"},  // max_in_flight is reached before
    {"queue.buffering.max.kbytes", "65536"},
    {"message.max.bytes", "1048588"},  // the brokers' own default
    {"allow.auto.create.topics", "false"},
    {"partitioner", "murmur2_random"},  // the same partitions as Java's producers
    {"retry.backoff.ms", "100"},
    {"reconnect.backoff.ms", "100"},
    {"reconnect.backoff.max.ms", "10000"},
    {"topic.metadata.propagation.max.ms", "3000"},
    {"log.connection.close", "false"},
};

constexpr std::int64_t kMostInFlight = 100000;

/// A property whose value matters for the promises.
struct Guard {
  std::string_view name;
  std::vector<std::string_view> allowed;  ///< Empty: it cannot be set at all.
  const char* reason;
  bool insecure_tls_lifts{false};
};

const std::vector<Guard>& guards() {
  static constexpr const char* kCode = "a configuration must not run code in the relay";
  static constexpr const char* kGap =
      "librdkafka would then leave out single events; set delivery_deadline instead";
  static constexpr const char* kMan =
      "anyone on the way could read and change the events; insecure_tls = true allows it";
  static constexpr const char* kTransactions = "the sink does not use Kafka's transactions";
  static const std::vector<Guard> all = {
      {"acks", {"all", "-1"}, "an event that fewer brokers have can be lost"},
      {"request.required.acks", {"all", "-1"}, "an event that fewer brokers have can be lost"},
      {"enable.idempotence", {"true"}, "without it events arrive twice and out of order"},
      {"enable.gapless.guarantee",
       {"true"},
       "without it later events of a key overtake one that failed"},
      {"message.timeout.ms", {"0"}, kGap},
      {"delivery.timeout.ms", {"0"}, kGap},
      {"retries", {}, kGap},
      {"message.send.max.retries", {}, kGap},
      {"max.in.flight",
       {"1", "2", "3", "4", "5"},
       "an idempotent producer keeps its order up to 5"},
      {"max.in.flight.requests.per.connection",
       {"1", "2", "3", "4", "5"},
       "an idempotent producer keeps its order up to 5"},
      {"delivery.report.only.error", {"false"}, "the relay waits for the report of each event"},
      {"transactional.id", {}, kTransactions},
      {"transaction.timeout.ms", {}, kTransactions},
      {"bootstrap.servers", {}, "set brokers instead"},
      {"metadata.broker.list", {}, "set brokers instead"},
      {"linger.ms", {}, "set linger instead"},
      {"queue.buffering.max.ms", {}, "set linger instead"},
      {"plugin.library.paths", {}, kCode},
      {"ssl.engine.location", {}, kCode},
      {"ssl.engine.id", {}, kCode},
      {"ssl.providers", {}, kCode},
      {"sasl.kerberos.kinit.cmd", {}, kCode},
      {"test.mock.num.brokers", {}, "a mock broker keeps nothing"},
      {"enable.ssl.certificate.verification", {"true"}, kMan, true},
      {"ssl.endpoint.identification.algorithm", {"https"}, kMan, true},
      {"enable.sasl.oauthbearer.unsecure.jwt", {"false"}, kMan, true},
      {"partitioner",
       {"murmur2_random", "murmur2", "consistent", "fnv1a", "fnv1a_random"},
       "events of one key, the empty one too, must stay on one partition"},
      {"queuing.strategy", {"fifo"}, "the client does not keep order with another one"},
  };
  return all;
}

tl::unexpected<Error> refused(std::string_view name, std::string_view value,
                              std::string_view reason) {
  return fail(Errc::invalid_argument,
              fmt::format("kafka.{}: \"{}\" is refused: {}", name, value, reason),
              "leave the setting out; the sink sets it as it must be");
}

/// These become words of a shell command, and the command runs in the relay.
bool is_plain_word(std::string_view value) {
  return value.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/@-") ==
         std::string_view::npos;
}

std::optional<Error> guard_against(std::string_view name, std::string_view value,
                                   bool insecure_tls) {
  // librdkafka takes a topic's properties under a second name, too.
  constexpr std::string_view kTopicPrefix = "topic.";
  if (name.starts_with(kTopicPrefix) && name != "topic.blacklist" &&
      !name.starts_with("topic.metadata.")) {
    return refused(name, value, "there is only one name for each property here").value();
  }
  const bool kerberos = name == "sasl.kerberos.principal" || name == "sasl.kerberos.keytab" ||
                        name == "sasl.kerberos.service.name";
  if (kerberos && !is_plain_word(value)) {
    return fail(Errc::invalid_argument,
                fmt::format("kafka.{}: holds a character that is none of A-Z a-z 0-9 . _ / @ -",
                            name),
                "it becomes part of a shell command of the client")
        .value();
  }
  for (const Guard& guard : guards()) {
    if (guard.name != name || (guard.insecure_tls_lifts && insecure_tls)) continue;
    const auto& allowed = guard.allowed;
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
      return refused(name, value, guard.reason).value();
    }
  }
  return std::nullopt;
}

void add_names(const char** dump, std::size_t count, std::vector<std::string>& names) {
  for (std::size_t i = 0; i + 1 < count; i += 2) names.emplace_back(dump[i]);
  rd_kafka_conf_dump_free(dump, count);
}

std::vector<std::string> known_properties() {
  std::vector<std::string> names;
  std::size_t count = 0;
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  const char** dump = rd_kafka_conf_dump(conf, &count);
  add_names(dump, count, names);
  rd_kafka_conf_destroy(conf);
  rd_kafka_topic_conf_t* topic_conf = rd_kafka_topic_conf_new();
  dump = rd_kafka_topic_conf_dump(topic_conf, &count);
  add_names(dump, count, names);
  rd_kafka_topic_conf_destroy(topic_conf);
  // What has no default is not in the dump, nor are second names; these are the ones that people set.
  for (const char* name :
       {"security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location",
        "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location",
        "ssl.key.password", "ssl.key.pem", "ssl.keystore.location", "ssl.keystore.password",
        "debug"}) {
    names.emplace_back(name);
  }
  for (const auto& [name, value] : kOurs) names.emplace_back(name);
  for (const Guard& guard : guards()) names.emplace_back(guard.name);
  return names;
}

tl::unexpected<Error> unknown_property(std::string_view name) {
  auto names = known_properties();
  for (const SettingInfo& setting : info().settings) names.push_back(setting.name);
  const std::vector<std::string_view> known(names.begin(), names.end());
  return fail(Errc::invalid_argument,
              fmt::format("kafka.{}: no such setting, and librdkafka has no such property", name),
              did_you_mean(name, known,
                           "the properties are in librdkafka's CONFIGURATION.md; this is version " +
                               std::string(rd_kafka_version_str())));
}

}  // namespace

Status set_property(rd_kafka_conf_t* conf, std::string_view name, const std::string& value) {
  char why[256] = "";
  switch (rd_kafka_conf_set(conf, std::string(name).c_str(), value.c_str(), why, sizeof why)) {
    case RD_KAFKA_CONF_OK: return {};
    case RD_KAFKA_CONF_UNKNOWN: return unknown_property(name);
    case RD_KAFKA_CONF_INVALID: break;
  }
  // librdkafka's text may quote the value, which may be a secret.
  const bool secret = name.find("password") != std::string_view::npos ||
                      name.find("secret") != std::string_view::npos ||
                      name.find("pem") != std::string_view::npos ||
                      name.find("jaas") != std::string_view::npos;
  return fail(Errc::invalid_argument,
              fmt::format("kafka.{}: {}", name, secret ? "is not a value it can have" : why));
}

std::size_t configured_batch_bytes(const rd_kafka_conf_t& conf) {
  std::array<char, 32> text{};
  std::size_t size = text.size();
  OUTBOX_CHECK(rd_kafka_conf_get(&conf, "batch.size", text.data(), &size) == RD_KAFKA_CONF_OK);
  return std::strtoull(text.data(), nullptr, 10);
}

bool sends_password_in_clear(const rd_kafka_conf_t& conf) {
  const auto is = [&conf](const char* property, std::string_view value) {
    std::array<char, 32> text{};
    std::size_t size = text.size();
    return rd_kafka_conf_get(&conf, property, text.data(), &size) == RD_KAFKA_CONF_OK &&
           std::string_view(text.data()) == value;
  };
  return is("security.protocol", "sasl_plaintext") && is("sasl.mechanisms", "PLAIN");
}

SinkInfo info() {
  return {
      .name = "kafka",
      .help = "produces to Apache Kafka with librdkafka; order per key without a gap",
      .settings =
          {{.name = "brokers",
            .type = "string",
            .default_value = "",
            .required = true,
            .help = "brokers to begin with: host:port, several with commas"},
           {.name = "delivery_deadline",
            .type = "duration",
            .default_value = "10s",
            .required = false,
            .help =
                "without any delivery for so long the sink gives up what is in flight and starts anew"},
           {.name = "linger",
            .type = "duration",
            .default_value = "1ms",
            .required = false,
            .help =
                "how long the client waits to fill a batch; 0 sends at once and costs more per event"},
           {.name = "max_in_flight",
            .type = "integer",
            .default_value = "5000",
            .required = false,
            .help =
                "events with the client and not yet acked, at most; more may help when the brokers are far away"},
           {.name = "insecure_tls",
            .type = "boolean",
            .default_value = "false",
            .required = false,
            .help =
                "allow to switch off the checks of the brokers' certificates; for trying things out"}},
      .free_form = true};
}

Result<Conf> make_conf(const Settings& settings) {
  if (settings.duration("delivery_deadline") < std::chrono::seconds(1)) {
    return fail(Errc::invalid_argument, "kafka.delivery_deadline: is shorter than 1 s");
  }
  if (settings.integer("max_in_flight") < 1 || settings.integer("max_in_flight") > kMostInFlight) {
    return fail(Errc::invalid_argument,
                fmt::format("kafka.max_in_flight: is not between 1 and {}", kMostInFlight));
  }
  if (settings.duration("delivery_deadline") > std::chrono::hours(1)) {
    return fail(Errc::invalid_argument, "kafka.delivery_deadline: is longer than 1 h");
  }
  if (2 * settings.duration("linger") > settings.duration("delivery_deadline")) {
    return fail(Errc::invalid_argument, "kafka.linger: is longer than half of delivery_deadline",
                "nothing would ever be delivered in time");
  }
  Conf conf(rd_kafka_conf_new());
  for (const auto& [name, value] : kOurs) {
    if (Status done = set_property(conf.get(), name, value); !done) return pass(done);
  }
  const auto linger_ms = static_cast<double>(settings.duration("linger").count()) / 1000.0;
  if (Status done = set_property(conf.get(), "linger.ms", fmt::format("{:.3f}", linger_ms)); !done)
    return pass(done);
  if (Status done = set_property(conf.get(), "bootstrap.servers", settings.text("brokers")); !done)
    return pass(done);
  for (const auto& [name, value] : settings.others()) {
    if (auto error = guard_against(name, value, settings.boolean("insecure_tls")))
      return fail(std::move(*error));
    if (Status done = set_property(conf.get(), name, value); !done) return pass(done);
  }
  return conf;
}

}  // namespace outbox::sink::kafka
