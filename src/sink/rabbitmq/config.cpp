#include "sink/rabbitmq/config.hpp"

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sink/login_settings.hpp"
#include "sink/rabbitmq/rabbitmq_sink.hpp"

namespace outbox::sink::rabbitmq {
namespace {

using namespace std::chrono_literals;

constexpr Scheme kSchemes[] = {{"amqp", 5672}, {"amqps", 5671}};
constexpr Scheme kManagementSchemes[] = {{"http", 15672}, {"https", 15671}};
constexpr std::size_t kLongestName = 255;  // The limit of a short string of AMQP.

SettingRows<RabbitSettings> rows() {
  using S = RabbitSettings;
  return joined<S>({
      {{"url", &S::url, Traits{.type = SettingType::url, .required = true, .secret = true},
        "The server: amqp://host:port/virtual-host, amqps:// for TLS. Several of a cluster with commas: the first one that answers is used."}},
      login_rows<S>(
          "Instead of the one in url. Without one: the user of tls_certificate if that is given, else guest."),
      tls_rows<S>(),
      {{"exchange", &S::exchange,
        "Where events are published, with the topic as the routing key. A template. Empty: the default exchange, whose routing keys are names of queues."},
       {"unroutable", &S::unroutable, Traits{.choices = {"block", "reject", "discard"}},
        "An event that no queue gets: block lets the subscription wait, reject parks the event, discard counts it as delivered."},
       {"declare", &S::declare,
        "Creates exchange, queue and binding, all durable, when the sink is opened and they are missing. false: it only checks that exchange and queue are there."},
       {"exchange_type", &S::exchange_type, Traits{.choices = {"topic", "direct", "fanout"}},
        "Of the exchange that is declared."},
       {"queue", &S::queue, "The queue to check or declare. Empty: none."},
       {"queue_type", &S::queue_type, Traits{.choices = {"quorum", "classic", "stream"}},
        "Of the queue that is declared."},
       {"binding", &S::binding,
        "The routing keys that the declared exchange gives to the declared queue, for a topic exchange a pattern such as order.#. Empty: all, for topic and fanout."},
       {"management_url", &S::management_url, Traits{.type = SettingType::url},
        "The server's management API, http://host:port. With it the sink warns about properties of queue with which events can be lost."},
       {"connect_timeout", &S::connect_timeout, Traits{.range = {100ms, 1min}},
        "For connecting and logging in, for all addresses together."},
       {"deadline", &S::deadline, Traits{.range = {1s, 1h}},
        "Without a confirmation for so long the connection counts as lost."},
       {"heartbeat", &S::heartbeat, Traits{.range = {1s, 1h}},
        "Both sides send something at least this often; after two intervals without anything the connection counts as lost."},
       {"max_in_flight", &S::max_in_flight, Traits{.range = {1, 100'000}},
        "Events sent and not yet confirmed."},
       {"max_message_size", &S::max_message_size,
        Traits{.type = SettingType::size,
               .range = {std::uint64_t{1} << 10U, std::uint64_t{512} << 20U}},
        "Larger events are rejected before they are sent. Set it as the server's max_message_size (128 MiB, from RabbitMQ 4.0 on 16 MiB)."}},
  });
}

// ---- what the table cannot express

bool any_tls(const std::vector<Endpoint>& endpoints) {
  return std::any_of(endpoints.begin(), endpoints.end(),
                     [](const Endpoint& endpoint) { return endpoint.scheme == "amqps"; });
}

void check_virtual_host(const std::vector<Endpoint>& endpoints, FieldErrors& errors) {
  for (const Endpoint& endpoint : endpoints) {
    if (endpoint.path != endpoints.front().path)
      errors.add({"rabbitmq.url", "names different virtual hosts",
                  "all addresses must be of one cluster, and have the same path"});
  }
  if (endpoints.front().path.size() > kLongestName)
    errors.add({"rabbitmq.url", "names a virtual host of more than 255 bytes", ""});
}

void check_user(const RabbitSettings& settings, const std::vector<Endpoint>& endpoints,
                FieldErrors& errors) {
  check_login("rabbitmq", settings.username, settings.password, endpoints, errors);
  if (settings.password.empty() || !settings.username.empty()) return;
  if (std::any_of(endpoints.begin(), endpoints.end(),
                  [](const Endpoint& endpoint) { return endpoint.username.empty(); }))
    errors.add({"rabbitmq.password", "is given without a username", "set rabbitmq.username"});
}

/// Checks fixed names. Those that depend on the event are checked with it (publication.hpp).
void check_names(const RabbitSettings& settings, const std::string& exchange, FieldErrors& errors) {
  const std::pair<const char*, const std::string*> names[] = {
      {"rabbitmq.exchange", &exchange},
      {"rabbitmq.queue", &settings.queue},
      {"rabbitmq.binding", &settings.binding}};
  for (const auto& [field, name] : names) {
    if (name->size() > kLongestName)
      errors.add({field, "is longer than 255 bytes", "AMQP has no longer names"});
    // RabbitMQ removes line breaks from declared names, but not from those that are published to.
    if (has_control(*name)) errors.add({field, "has control characters", "remove them"});
  }
}

void check_declaration(const RabbitSettings& settings, const format::Template& exchange,
                       FieldErrors& errors) {
  const bool has_exchange = !settings.exchange.empty();
  const bool has_queue = !settings.queue.empty();
  if (!settings.declare) {
    if (!settings.binding.empty())
      errors.add({"rabbitmq.binding", "has no effect", "set rabbitmq.declare = true"});
    return;
  }
  if (!exchange.fixed())
    errors.add({"rabbitmq.declare", "cannot create exchanges that depend on the event",
                "create them yourself, or use an exchange without fields"});
  if (!has_exchange && !has_queue)
    errors.add({"rabbitmq.declare", "has nothing to declare",
                "set rabbitmq.exchange, rabbitmq.queue or both"});
  if (!settings.binding.empty() && !(has_exchange && has_queue))
    errors.add({"rabbitmq.binding", "needs an exchange and a queue",
                "the default exchange gives each queue what has its name as the routing key"});
  if (settings.binding.empty() && has_exchange && has_queue && settings.exchange_type == "direct")
    errors.add({"rabbitmq.binding", "is missing",
                "a direct exchange needs the routing key for the queue"});
}

std::string choose_binding(const RabbitSettings& settings) {
  const bool all = settings.binding.empty() && settings.exchange_type == "topic";
  return all ? "#" : settings.binding;
}

format::Template parse_exchange(const RabbitSettings& settings, FieldErrors& errors) {
  auto exchange = format::Template::compile("rabbitmq.exchange", settings.exchange);
  if (exchange) return std::move(*exchange);
  errors.add(exchange.error());
  return {};
}

std::optional<Endpoint> parse_management(const RabbitSettings& settings, FieldErrors& errors) {
  constexpr const char* kField = "rabbitmq.management_url";
  if (settings.management_url.empty()) return std::nullopt;
  if (settings.queue.empty())
    errors.add({kField, "has no effect", "set rabbitmq.queue, which it is asked about"});
  auto endpoints = parse_endpoints(kField, settings.management_url, kManagementSchemes, errors);
  if (endpoints.empty()) return std::nullopt;
  if (endpoints.size() > 1) errors.add({kField, "has several addresses", "one is enough"});
  if (!endpoints.front().username.empty())
    errors.add({kField, "has a username", "the one of rabbitmq.url or rabbitmq.username is used"});
  return std::move(endpoints.front());
}

Unroutable parse_unroutable(const RabbitSettings& settings) {
  if (settings.unroutable == "reject") return Unroutable::reject;
  return settings.unroutable == "discard" ? Unroutable::discard : Unroutable::block;
}

void check(const RabbitSettings& settings, FieldErrors& errors) {
  (void)parse_options(settings, errors);
}

void check_use(const RabbitSettings& settings, const SubscriptionSpec& spec, FieldErrors& errors) {
  if (spec.topic.empty() && settings.exchange.empty())
    errors.add({"topic", "is empty", "with the default exchange it is the name of the queue"});
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::make_network
Result<std::unique_ptr<NetworkSink>> make(RabbitSettings settings, const SubscriptionSpec& spec) {
  OUTBOX_TRY(RabbitOptions options, read_valid(parse_options, settings));
  options.connection_name = "outbox " + spec.name;
  return std::make_unique<RabbitSink>(std::move(options));
}

}  // namespace

Login make_login(const RabbitOptions& options, const Endpoint& endpoint) {
  Login given{
      .username = options.plain.username.empty() ? endpoint.username : options.plain.username,
      .password = options.plain.password.empty() ? endpoint.password : options.plain.password};
  if (!given.username.empty() || !options.plain.tls.certificate.empty()) return given;
  return {.username = "guest", .password = "guest"};
}

RabbitOptions parse_options(const RabbitSettings& settings, FieldErrors& errors) {
  const format::Template exchange = parse_exchange(settings, errors);
  const std::string fixed_exchange = exchange.fixed().value_or("");
  RabbitOptions options{
      .plain = settings,
      .endpoints = parse_endpoints("rabbitmq.url", settings.url, kSchemes, errors),
      .exchange = exchange,
      .topology = {.exchange = fixed_exchange,
                   .queue = settings.queue,
                   .declare = settings.declare,
                   .exchange_type = settings.exchange_type,
                   .queue_type = settings.queue_type,
                   .binding = choose_binding(settings)},
      .unroutable = parse_unroutable(settings),
      .management = parse_management(settings, errors),
      .heartbeat = std::chrono::duration_cast<std::chrono::seconds>(settings.heartbeat)};
  check_names(settings, fixed_exchange, errors);
  check_declaration(settings, exchange, errors);
  if (options.endpoints.empty()) return options;
  check_virtual_host(options.endpoints, errors);
  check_user(settings, options.endpoints, errors);
  check_tls("rabbitmq", settings.tls, errors);
  if (!any_tls(options.endpoints))
    check_no_tls("rabbitmq", settings.tls, "begin rabbitmq.url with amqps://", errors);
  return options;
}

const Declaration<RabbitSettings>& declaration() {
  static const Declaration<RabbitSettings> rabbitmq{
      .name = "rabbitmq",
      .help = "publishes to RabbitMQ and waits for its confirmation of each event",
      .rows = rows(),
      .check = check,
      .check_use = check_use,
      .make_network = make};
  return rabbitmq;
}

SinkKind kind() { return make_kind(declaration()); }

}  // namespace outbox::sink::rabbitmq
