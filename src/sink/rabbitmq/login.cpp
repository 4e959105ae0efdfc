#include "sink/rabbitmq/login.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "sink/rabbitmq/error_map.hpp"
#include "sink/rabbitmq/table.hpp"

namespace outbox::sink::rabbitmq {
namespace {

/// Whether the server answers with the version that it speaks because it does not speak ours
/// (specification 4.2.2). librabbitmq's parser gives it the type 'A', from "AMQP".
bool is_other_version(const amqp_frame_t& frame) { return frame.frame_type == 'A'; }

}  // namespace

Result<const void*> Requests::await(amqp_channel_t channel, amqp_method_number_t id,
                                    Describe describe) {
  while (true) {
    OUTBOX_TRY(const amqp_frame_t* frame, connection_.wait(until_));
    if (is_other_version(*frame))
      return fail(connection_.failed(Errc::unsupported, "does not speak AMQP 0-9-1"));
    if (frame->frame_type != AMQP_FRAME_METHOD) continue;
    const amqp_method_t& method = frame->payload.method;
    if (frame->channel == channel && method.id == id) return method.decoded;
    if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
      const auto& close = *static_cast<const amqp_connection_close_t*>(method.decoded);
      Error error = describe(close.reply_code, to_text(close.reply_text), connection_.address());
      connection_.send(0, AMQP_CONNECTION_CLOSE_OK_METHOD, amqp_connection_close_ok_t{});
      (void)connection_.flush();
      return fail(std::move(error));
    }
    if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
      const auto& close = *static_cast<const amqp_channel_close_t*>(method.decoded);
      return fail(describe(close.reply_code, to_text(close.reply_text), connection_.address()));
    }
  }
}

Status Requests::await_answer(amqp_method_number_t id) {
  OUTBOX_TRY(const void* answer, await(kChannel, id, describe));
  (void)answer;
  return {};
}

Status Requests::open_channel() {
  return call(AMQP_CHANNEL_OPEN_METHOD, amqp_channel_open_t{}, AMQP_CHANNEL_OPEN_OK_METHOD);
}

Status Requests::confirm_messages() {
  return call(AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t{}, AMQP_CONFIRM_SELECT_OK_METHOD);
}

namespace {

/// Explains the code that, after a declaration, means that it exists with other properties; after a
/// message it means something else.
Status about(Status done, const char* setting) {
  if (done) return done;
  Error& error = done.error();
  if (error.origin == fmt::format("rabbitmq:{}", AMQP_PRECONDITION_FAILED)) {
    error.code = Errc::already_exists;
    error.hint = fmt::format(
        "it exists with other properties than {} says: make the setting agree, or declare = false",
        setting);
  }
  return done;
}

Status check_exchange(Requests& requests, const Topology& topology) {
  amqp_exchange_declare_t method{};
  method.exchange = to_bytes(topology.exchange);
  method.type = to_bytes(topology.exchange_type);
  method.passive = topology.declare ? 0 : 1;
  method.durable = 1;
  return about(requests.call(AMQP_EXCHANGE_DECLARE_METHOD, method, AMQP_EXCHANGE_DECLARE_OK_METHOD),
               "rabbitmq.exchange_type");
}

Status check_queue(Requests& requests, const Topology& topology) {
  amqp_table_entry_t type = make_entry("x-queue-type", topology.queue_type);
  amqp_queue_declare_t method{};
  method.queue = to_bytes(topology.queue);
  method.passive = topology.declare ? 0 : 1;
  method.durable = 1;
  if (topology.declare) method.arguments = make_table({&type, 1});
  return about(requests.call(AMQP_QUEUE_DECLARE_METHOD, method, AMQP_QUEUE_DECLARE_OK_METHOD),
               "rabbitmq.queue_type");
}

Status bind(Requests& requests, const Topology& topology) {
  amqp_queue_bind_t method{};
  method.queue = to_bytes(topology.queue);
  method.exchange = to_bytes(topology.exchange);
  method.routing_key = to_bytes(topology.binding);
  return requests.call(AMQP_QUEUE_BIND_METHOD, method, AMQP_QUEUE_BIND_OK_METHOD);
}

}  // namespace

Status check_topology(Requests& requests, const Topology& topology) {
  if (!topology.exchange.empty()) {
    OUTBOX_TRY(check_exchange(requests, topology));
  }
  if (topology.queue.empty()) return {};
  OUTBOX_TRY(check_queue(requests, topology));
  // Every queue is bound to the default exchange by its name, and in no other way.
  if (!topology.declare || topology.exchange.empty()) return {};
  return bind(requests, topology);
}

namespace {

constexpr std::size_t kMostInFrame = std::size_t{128} << 10U;  // RabbitMQ's default.
/// The login must fit into the smallest frame, with room for what else is in it.
constexpr std::size_t kLongestLogin = 2048;

bool is_in_list(std::string_view word, std::string_view words) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

/// The steps of specification 2.2.4, each of which waits for its answer.
class Opening {
 public:
  Opening(Connection& connection, const RabbitOptions& options, const Endpoint& endpoint,
          Connection::TimePoint until)
      : connection_(connection),
        requests_(connection, until),
        options_(options),
        endpoint_(endpoint) {}

  [[nodiscard]] Status run(const Prepare& prepare) {
    OUTBOX_TRY(authenticate());
    OUTBOX_TRY(tune());
    OUTBOX_TRY(enter_virtual_host());
    OUTBOX_TRY(requests_.open_channel());
    return prepare(requests_);
  }

 private:
  [[nodiscard]] Status authenticate() {
    const auto [user, password] = make_login(options_, endpoint_);
    connection_.greet();
    OUTBOX_TRY(const auto* start, await<amqp_connection_start_t>(AMQP_CONNECTION_START_METHOD));
    // Without a user the certificate identifies us (RabbitMQ's plugin rabbitmq_auth_mechanism_ssl).
    const bool by_certificate = user.empty();
    const char* const mechanism = by_certificate ? "EXTERNAL" : "PLAIN";
    if (!is_in_list(mechanism, to_text(start->mechanisms))) return fail(no_mechanism(mechanism));
    if (user.size() + password.size() > kLongestLogin)
      return fail(connection_.failed(Errc::invalid_argument, "username and password are too long"));
    std::string response;  // This has the format of RFC 4616.
    if (!by_certificate) response.append(1, '\0').append(user).append(1, '\0').append(password);
    start_ok(mechanism, response);
    return {};
  }

  void start_ok(std::string_view mechanism, const std::string& response) {
    // Without these the server tells neither that it blocks the connection, nor why a login fails,
    // nor that it has ended a consumer because its queue is gone.
    amqp_table_entry_t capabilities[] = {true_entry("connection.blocked"),
                                         true_entry("publisher_confirms"), true_entry("basic.nack"),
                                         true_entry("authentication_failure_close"),
                                         true_entry("consumer_cancel_notify")};
    amqp_table_entry_t properties[] = {make_entry("product", "outbox"),
                                       make_entry("connection_name", options_.connection_name),
                                       make_entry("capabilities", make_table(capabilities))};
    connection_.send(0, AMQP_CONNECTION_START_OK_METHOD,
                     amqp_connection_start_ok_t{.client_properties = make_table(properties),
                                                .mechanism = to_bytes(mechanism),
                                                .response = to_bytes(response),
                                                .locale = to_bytes("en_US")});
  }

  /// Where the server has no limit of frames (0), ours applies. The client chooses the heartbeat
  /// (specification 4.2.7).
  [[nodiscard]] Status tune() {
    OUTBOX_TRY(const auto* offer, await<amqp_connection_tune_t>(AMQP_CONNECTION_TUNE_METHOD));
    const std::size_t most = offer->frame_max == 0
                                 ? kMostInFrame
                                 : std::min<std::size_t>(offer->frame_max, kMostInFrame);
    if (most < kLeastFrame)
      return fail(connection_.failed(Errc::unsupported, fmt::format("frame_max {}", most)));
    connection_.send(0, AMQP_CONNECTION_TUNE_OK_METHOD,
                     amqp_connection_tune_ok_t{
                         .channel_max = kChannel,
                         .frame_max = static_cast<std::uint32_t>(most),
                         .heartbeat = static_cast<std::uint16_t>(options_.heartbeat.count())});
    connection_.tune(most, options_.heartbeat);
    return {};
  }

  [[nodiscard]] Status enter_virtual_host() {
    const std::string_view name =
        endpoint_.path.empty() ? std::string_view("/") : std::string_view(endpoint_.path);
    connection_.send(
        0, AMQP_CONNECTION_OPEN_METHOD,
        amqp_connection_open_t{.virtual_host = to_bytes(name), .capabilities = {}, .insist = 0});
    OUTBOX_TRY(const auto* ok, await<amqp_connection_open_ok_t>(AMQP_CONNECTION_OPEN_OK_METHOD));
    (void)ok;
    return {};
  }

  template <class Method>
  [[nodiscard]] Result<const Method*> await(amqp_method_number_t id) {
    OUTBOX_TRY(const void* method, requests_.await(0, id, describe_login));
    return static_cast<const Method*>(method);
  }

  [[nodiscard]] Error no_mechanism(std::string_view name) const {
    Error error = connection_.failed(Errc::unsupported,
                                     fmt::format("the server does not offer the login {}", name));
    error.remedy = Remedy::fix;
    error.effect = Effect::none;
    error.hint = name == "PLAIN"
                     ? "add PLAIN to the server's auth_mechanisms, or use a client certificate"
                     : "set rabbitmq.username and rabbitmq.password, or enable the server's plugin "
                       "rabbitmq_auth_mechanism_ssl and add EXTERNAL to auth_mechanisms";
    return error;
  }

  Connection& connection_;
  Requests requests_;
  const RabbitOptions& options_;
  const Endpoint& endpoint_;
};

Result<std::unique_ptr<Connection>> open_one(const RabbitOptions& options, const Endpoint& endpoint,
                                             Connection::TimePoint until, const Prepare& prepare) {
  OUTBOX_TRY(std::unique_ptr<Connection> connection,
             Connection::open(endpoint, options.plain.tls, until, options.plain.deadline));
  const Status done = Opening(*connection, options, endpoint, until).run(prepare);
  if (done) return connection;
  connection->say_goodbye();
  return tl::unexpected(done.error());
}

}  // namespace

Result<std::unique_ptr<Connection>> open_connection(const RabbitOptions& options,
                                                    Connection::TimePoint until,
                                                    const Prepare& prepare) {
  std::optional<Error> first;
  auto left = static_cast<int>(options.endpoints.size());
  for (const Endpoint& endpoint : options.endpoints) {
    const auto at = std::chrono::steady_clock::now();
    auto connection = open_one(options, endpoint, at + (until - at) / left--, prepare);
    if (connection) return connection;
    if (!first) {
      first = std::move(connection.error());
    } else {
      first->message.append("; ").append(connection.error().message);
    }
  }
  OUTBOX_CHECK(first.has_value());
  return fail(std::move(*first));
}

}  // namespace outbox::sink::rabbitmq
