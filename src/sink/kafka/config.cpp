#include "sink/kafka/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sink/kafka/client.hpp"
#include "sink/kafka/kafka_sink.hpp"
#include "sink/kafka/read_back.hpp"

namespace outbox::sink::kafka {
namespace {

using namespace std::chrono_literals;

/// The properties that gapless delivery without loss needs, and those for which a relay needs other
/// defaults than librdkafka's.
constexpr std::pair<const char*, const char*> kSinkSettings[] = {
    {"client.id", "outbox"},
    {"enable.idempotence", "true"},
    {"acks", "all"},
    {"enable.gapless.guarantee", "true"},
    // delivery_deadline replaces this limit: it gives up everything, not one message in the middle.
    {"message.timeout.ms", "0"},
    {"max.in.flight.requests.per.connection", "5"},
    {"socket.timeout.ms", "6000"},
    {"request.timeout.ms", "5000"},
    {"socket.connection.setup.timeout.ms", "10000"},
    {"socket.keepalive.enable", "true"},
    {"socket.nagle.disable", "true"},
    {"batch.size", "1000000"},
    {"compression.type", "lz4"},
    {"queue.buffering.max.messages", "100000"},  // The setting max_in_flight is lower.
    {"queue.buffering.max.kbytes", "65536"},
    {"message.max.bytes", "1048588"},  // This is the brokers' default.
    {"allow.auto.create.topics", "false"},
    {"partitioner", "murmur2_random"},  // This chooses the partitions of Java's producers.
    {"retry.backoff.ms", "100"},
    {"reconnect.backoff.ms", "100"},
    {"reconnect.backoff.max.ms", "10000"},
    {"log.connection.close", "false"},
};

/// How long a topic that was just made may be unknown to some brokers.
constexpr std::chrono::milliseconds kPropagation{3000};

SettingRows<KafkaSettings> rows() {
  using S = KafkaSettings;
  return joined<S>({
      {{"brokers", &S::brokers, Traits{.required = true},
        "Brokers to connect to first: host:port, several with commas."}},
      {{"tls", &S::encrypted, "Encrypts the connections with TLS."},
       {"username", &S::username, "Logs in with SASL."},
       {"password", &S::password, Traits{.secret = true}, "Goes with the username."},
       {"sasl_mechanism", &S::mechanism,
        Traits{.choices = {"SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"}},
        "How the password is proved. PLAIN sends it: use it with TLS."}},
      tls_rows<S>(),
      {{"connect_timeout", &S::connect_timeout, Traits{.range = {500ms, 1h}},
        "How long to wait for a broker's answer when the sink is opened."},
       {"delivery_deadline", &S::delivery_deadline, Traits{.range = {1s, 1h}},
        "After this time without a delivery the sink gives up what is in flight and starts again."},
       {"linger", &S::linger, Traits{.range = {0s, 30min}},
        "How long the client waits to fill a batch. 0 sends at once and costs more per event."},
       {"max_in_flight", &S::max_in_flight, Traits{.range = {1, 100'000}},
        "Events sent and not yet acked. More may help when the brokers are far away."}},
      {{"create.partitions", &S::create, &NewTopics::partitions, Traits{.range = {0, 10'000}},
        "Topics that do not exist are made, with so many partitions. 0: they are not made."},
       {"create.replication", &S::create, &NewTopics::replication, Traits{.range = {0, 100}},
        "The replicas of each partition of such a topic. 0: as the brokers are configured."}},
  });
}

/// A property whose value matters for the promises.
struct Guard {
  std::string_view name;
  std::vector<std::string_view> allowed;  ///< Empty if the property cannot be set at all.
  const char* reason;
  bool insecure_tls_lifts{false};
};

const std::vector<Guard>& guards() {
  static constexpr const char* kCode = "a configuration must not run code in the relay";
  static constexpr const char* kGap =
      "librdkafka would then skip single events; set delivery_deadline instead";
  static constexpr const char* kMan =
      "others could read and change the events in transit; insecure_tls = true allows it";
  static constexpr const char* kTransactions = "the sink does not use Kafka's transactions";
  static const std::vector<Guard> all = {
      {"acks", {"all", "-1"}, "an event that fewer brokers have can be lost"},
      {"request.required.acks", {"all", "-1"}, "an event that fewer brokers have can be lost"},
      {"enable.idempotence", {"true"}, "without it events can arrive twice and out of order"},
      {"enable.gapless.guarantee",
       {"true"},
       "without it later events of a key can overtake one that failed"},
      {"message.timeout.ms", {"0"}, kGap},
      {"delivery.timeout.ms", {"0"}, kGap},
      {"retries", {}, kGap},
      {"message.send.max.retries", {}, kGap},
      {"max.in.flight",
       {"1", "2", "3", "4", "5"},
       "an idempotent producer keeps order with at most 5"},
      {"max.in.flight.requests.per.connection",
       {"1", "2", "3", "4", "5"},
       "an idempotent producer keeps order with at most 5"},
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
      {"test.mock.num.brokers", {}, "a mock broker stores nothing"},
      {"enable.ssl.certificate.verification", {"true"}, kMan, true},
      {"ssl.endpoint.identification.algorithm", {"https"}, kMan, true},
      {"enable.sasl.oauthbearer.unsecure.jwt", {"false"}, kMan, true},
      {"partitioner",
       {"murmur2_random", "murmur2", "consistent", "fnv1a", "fnv1a_random"},
       "events of one key, the empty one too, must stay on one partition"},
      {"queuing.strategy", {"fifo"}, "the client keeps order only with fifo"},
  };
  return all;
}

FieldError property_error(std::string_view property, std::string what, std::string hint = {}) {
  return {fmt::format("kafka.{}", property), std::move(what), std::move(hint)};
}

FieldError refused(std::string_view name, std::string_view value, std::string_view reason) {
  return property_error(name, fmt::format("\"{}\" is refused: {}", value, reason),
                        "remove the setting; the sink sets it correctly");
}

/// Whether the value is safe as a word of a shell command that runs in the relay.
bool is_plain_word(std::string_view value) {
  return value.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/@-") ==
         std::string_view::npos;
}

std::optional<FieldError> guard_against(std::string_view name, std::string_view value,
                                        bool insecure_tls) {
  // librdkafka accepts a topic's properties under a second name, too.
  constexpr std::string_view kTopicPrefix = "topic.";
  if (name.starts_with(kTopicPrefix) && name != "topic.blacklist" &&
      !name.starts_with("topic.metadata.")) {
    return refused(name, value, "set the property by its name without topic.");
  }
  const bool kerberos = name == "sasl.kerberos.principal" || name == "sasl.kerberos.keytab" ||
                        name == "sasl.kerberos.service.name";
  if (kerberos && !is_plain_word(value)) {
    return property_error(name, "has characters other than A-Z a-z 0-9 . _ / @ -",
                          "it becomes part of a shell command of the client");
  }
  for (const Guard& guard : guards()) {
    if (guard.name != name || (guard.insecure_tls_lifts && insecure_tls)) continue;
    const auto& allowed = guard.allowed;
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      return refused(name, value, guard.reason);
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
  // The dump lacks properties without default and aliases; these are the ones that people set.
  for (const char* name :
       {"security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location",
        "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location",
        "ssl.key.password", "ssl.key.pem", "ssl.keystore.location", "ssl.keystore.password",
        "debug"}) {
    names.emplace_back(name);
  }
  for (const auto& [name, value] : kSinkSettings) names.emplace_back(name);
  for (const Guard& guard : guards()) names.emplace_back(guard.name);
  return names;
}

FieldError unknown_property(std::string_view name) {
  auto names = known_properties();
  for (const auto& row : rows()) names.push_back(row.setting.name);
  const std::vector<std::string_view> known(names.begin(), names.end());
  return property_error(
      name, "no such setting, and librdkafka has no such property",
      did_you_mean(
          name, known,
          fmt::format("librdkafka's CONFIGURATION.md lists the properties; this is version {}",
                      rd_kafka_version_str())));
}

/// A property that one of our settings makes, too.
struct Twin {
  std::string_view property;
  std::string_view setting;
  bool given{false};  ///< Whether the setting was given.
};

void check_twins(const KafkaSettings& s, FieldErrors& errors) {
  const bool login = !s.username.empty();
  const Twin twins[] = {{"security.protocol", "tls and username", s.encrypted || login},
                        {"sasl.mechanism", "sasl_mechanism", login},
                        {"sasl.mechanisms", "sasl_mechanism", login},
                        {"sasl.username", "username", login},
                        {"sasl.password", "password", login},
                        {"ssl.ca.location", "tls_ca", !s.tls.ca.empty()},
                        {"ssl.ca.pem", "tls_ca", !s.tls.ca.empty()},
                        {"ssl.certificate.location", "tls_certificate", !s.tls.certificate.empty()},
                        {"ssl.certificate.pem", "tls_certificate", !s.tls.certificate.empty()},
                        {"ssl.keystore.location", "tls_certificate", !s.tls.certificate.empty()},
                        {"ssl.key.location", "tls_key", !s.tls.key.empty()},
                        {"ssl.key.pem", "tls_key", !s.tls.key.empty()}};
  for (const Twin& twin : twins) {
    if (twin.given && s.properties.contains(std::string(twin.property)))
      errors.add(property_error(twin.property, "is set beside a setting of the same meaning",
                                fmt::format("remove it; {} of this sink say it", twin.setting)));
  }
}

bool is_encrypted(const rd_kafka_conf_t& conf) {
  return property(conf, "security.protocol").ends_with("ssl");
}

void check_login(const KafkaSettings& s, const rd_kafka_conf_t& conf, FieldErrors& errors) {
  if (s.username.empty() != s.password.empty()) {
    const bool no_name = s.username.empty();
    errors.add(property_error(no_name ? "username" : "password", "is missing",
                              no_name ? "kafka.password is set" : "kafka.username is set"));
  }
  check_tls("kafka", s.tls, errors);
  if (!is_encrypted(conf)) check_no_tls("kafka", s.tls, "set tls = true", errors);
}

/// Sets the properties of librdkafka that our settings of TLS and of the login stand for.
template <class Set>
void secure(const KafkaSettings& s, const Set& set) {
  const bool login = !s.username.empty();
  if (s.encrypted || login)
    set("security.protocol",
        fmt::format("{}{}", login ? "sasl_" : "", s.encrypted ? "ssl" : "plaintext"));
  if (login) {
    set("sasl.mechanisms", s.mechanism);
    set("sasl.username", s.username);
    set("sasl.password", s.password);
  }
  if (!s.tls.ca.empty()) set("ssl.ca.location", s.tls.ca);
  if (!s.tls.certificate.empty()) set("ssl.certificate.location", s.tls.certificate);
  if (!s.tls.key.empty()) set("ssl.key.location", s.tls.key);
}

/// Does nothing without TLS, where these properties have no effect or are missing in the client.
template <class Set>
void check_certificates(const KafkaSettings& s, const rd_kafka_conf_t& conf, const Set& set) {
  if (!is_encrypted(conf)) return;
  const auto given = [&](const char* name) { return s.properties.contains(name); };
  const bool name = given("ssl.endpoint.identification.algorithm");
  // librdkafka before 2.0 compares the name in the certificate only if it is told to.
  if (!name) set("ssl.endpoint.identification.algorithm", "https");
  if (s.tls.insecure && !name && !given("enable.ssl.certificate.verification"))
    set("enable.ssl.certificate.verification", "false");
}

/// The text of a template without its fields, whose values only an event has.
std::string without_fields(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool field = text.starts_with('{') && !text.starts_with("{{");
    if (!field) out += text.front();
    const std::size_t end = field ? std::min(text.find('}'), text.size() - 1) + 1 : 1;
    text.remove_prefix(end);
  }
  return out;
}

void check_topic(const std::string& topic, FieldErrors& errors) {
  const bool is_template = topic.find_first_of("{}") != std::string::npos;
  if (is_topic_name(is_template ? "x" + without_fields(topic) : topic)) return;
  const char* const what = is_template ? "does not make a valid name of a Kafka topic"
                                       : "is not a valid name of a Kafka topic";
  errors.add({"topic", topic.empty() ? "is empty" : what,
              "letters, digits, '.', '_' and '-', at most 249 of them"});
}

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && stop == end && port > 0;
}

struct Broker {
  std::string_view host;
  std::optional<std::string_view> port{};
};

/// Parses HOST:PORT, several with commas. The port may be missing; SSL:// may precede.
std::vector<Broker> parse_brokers(std::string_view list) {
  std::vector<Broker> found;
  while (true) {
    std::string_view text = trimmed(list.substr(0, list.find(',')));
    if (const auto scheme = text.find("://"); scheme != std::string_view::npos)
      text.remove_prefix(scheme + 3);
    const std::size_t bracket = text.find(']');  // The address may be [::1]:9092.
    const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
    Broker& one = found.emplace_back(Broker{.host = text.substr(0, colon)});
    if (colon != std::string_view::npos) one.port = text.substr(colon + 1);
    if (list.find(',') == std::string_view::npos) return found;
    list.remove_prefix(list.find(',') + 1);
  }
}

bool is_usable(const Broker& broker) {
  return !broker.host.empty() && broker.host.find_first_of(" /\t") == std::string_view::npos &&
         (!broker.port || is_port(*broker.port));
}

/// Whether only this machine can listen in on a connection to the broker.
bool is_local(const Broker& broker) {
  return broker.host == "localhost" || broker.host == "[::1]" || broker.host.starts_with("127.");
}

void check_use(const KafkaSettings& settings, const SubscriptionSpec& spec, FieldErrors& errors) {
  check_topic(spec.topic, errors);
  for (const Broker& broker : parse_brokers(settings.brokers)) {
    if (is_usable(broker)) continue;
    errors.add(property_error("brokers", "has an entry that is not HOST:PORT",
                              "such as kafka-1:9092,kafka-2:9092"));
  }
}

void check(const KafkaSettings& settings, FieldErrors& errors) {
  if (2 * settings.linger > settings.delivery_deadline) {
    errors.add(property_error("linger", "is longer than half of delivery_deadline",
                              "nothing would be delivered in time"));
  }
  if (settings.create.replication > 0 && settings.create.partitions == 0) {
    errors.add(property_error("create.partitions", "is missing",
                              "create = { partitions = 6, replication = 3 }"));
  }
  check_twins(settings, errors);
  const Conf conf = make_conf(settings, errors);
  check_login(settings, *conf, errors);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::make
Result<std::unique_ptr<Sink>> make(KafkaSettings settings) {
  OUTBOX_TRY(Conf conf, read_valid(make_conf, settings));
  const std::vector<Weakness> weaknesses = find_weaknesses(settings, *conf);
  WeaknessLog("kafka").warn(settings.brokers, weaknesses);
  return std::make_unique<KafkaSink>(std::move(conf),
                                     KafkaOptions{.connect_timeout = settings.connect_timeout,
                                                  .delivery_deadline = settings.delivery_deadline,
                                                  .max_in_flight = settings.max_in_flight,
                                                  .create = settings.create,
                                                  .insecure = sink::is_insecure(weaknesses)});
}

}  // namespace

std::optional<FieldError> set_property(rd_kafka_conf_t* conf, std::string_view name,
                                       const std::string& value) {
  char why[256] = "";
  switch (rd_kafka_conf_set(conf, std::string(name).c_str(), value.c_str(), why, sizeof why)) {
    case RD_KAFKA_CONF_OK: return std::nullopt;
    case RD_KAFKA_CONF_UNKNOWN: return unknown_property(name);
    case RD_KAFKA_CONF_INVALID: break;
  }
  // librdkafka's text may quote the value.
  return property_error(name, is_secret(name) ? "does not take this value" : why);
}

std::string property(const rd_kafka_conf_t& conf, const char* name) {
  std::array<char, 32> text{};
  std::size_t size = text.size();
  const auto got = rd_kafka_conf_get(&conf, name, text.data(), &size);
  return got == RD_KAFKA_CONF_OK ? text.data() : std::string();
}

std::vector<Weakness> find_weaknesses(const KafkaSettings& settings, const rd_kafka_conf_t& conf) {
  std::vector<Weakness> found;
  const bool encrypted = is_encrypted(conf);
  const auto brokers = parse_brokers(settings.brokers);
  if (!encrypted && !std::all_of(brokers.begin(), brokers.end(), is_local))
    found.push_back(in_clear("tls = true"));
  if (encrypted && settings.tls.insecure) {
    found.push_back({"insecure_tls", "whoever controls the network can read and swallow events",
                     "tls_ca with the authority of the brokers' certificates"});
  }
  return found;
}

bool names_file(std::string_view property, std::string_view value) {
  return property.ends_with(".location") && value != "probe";
}

bool is_secret(std::string_view property) {
  if (property.ends_with(".location")) return false;
  for (const std::string_view word : {"password", "secret", "pem", "jaas", "oauthbearer.config"}) {
    if (property.find(word) != std::string_view::npos) return true;
  }
  return false;
}

Conf make_conf(const KafkaSettings& settings, FieldErrors& errors) {
  Conf conf(rd_kafka_conf_new());
  const auto set = [&](std::string_view name, const std::string& value) {
    auto wrong = set_property(conf.get(), name, value);
    if (wrong) errors.add(std::move(*wrong));
  };
  for (const auto& [name, value] : kSinkSettings) set(name, value);
  set("linger.ms", fmt::format("{:.3f}", static_cast<double>(settings.linger.count()) / 1000.0));
  // With this "unknown topic", which names the topic, comes before the deadline.
  const auto third = std::chrono::ceil<std::chrono::milliseconds>(settings.delivery_deadline / 3);
  set("topic.metadata.propagation.max.ms", std::to_string(std::min(kPropagation, third).count()));
  if (!settings.brokers.empty()) set("bootstrap.servers", settings.brokers);
  for (const auto& [name, value] : settings.properties) {
    auto wrong = guard_against(name, value, settings.tls.insecure);
    wrong ? errors.add(std::move(*wrong)) : set(name, value);
  }
  secure(settings, set);
  check_certificates(settings, *conf, set);
  return conf;
}

const Declaration<KafkaSettings>& declaration() {
  static const Declaration<KafkaSettings> kafka{
      .name = "kafka",
      .help = "produces to Apache Kafka with librdkafka, in order per key and without gaps",
      .rows = rows(),
      .passed_on =
          PassedOn{
              .help =
                  "Other keys are properties of librdkafka; see [docs/sinks/kafka.md](../sinks/kafka.md).",
              .names_file = names_file,
              .is_secret = is_secret},
      .others = [](KafkaSettings& s) -> Texts& { return s.properties; },
      .check = check,
      .check_use = check_use,
      .make = make,
      .inspect = inspect,
      .read_back = read_back};
  return kafka;
}

SinkKind kind() { return make_kind(declaration()); }

}  // namespace outbox::sink::kafka
