// A queue of RabbitMQ, which is reached by the default exchange. It is a quorum queue, or a stream,
// which can be read again and again.
#include <sys/time.h>

#include <array>
#include <optional>
#include <outbox/event.hpp>
#include <set>

#include "base/reference.hpp"
#include "sink/endpoint.hpp"
#include "sink/rabbitmq/librabbitmq.hpp"
#include "support/destinations.hpp"
#include "support/failure.hpp"

namespace outbox::test {
namespace {

constexpr amqp_channel_t kChannel = 1;
constexpr std::size_t kMostRabbitInFlight = 512;  // the sink's default
constexpr std::uint16_t kPrefetch = 1000;
constexpr timeval kLimit{.tv_sec = 20, .tv_usec = 0};
constexpr std::array<sink::Scheme, 1> kRabbitSchemes{{{"amqp", 5672}}};

amqp_bytes_t bytes(std::string_view text) {
  return {.len = text.size(), .bytes = const_cast<char*>(text.data())};
}

amqp_table_entry_t text_entry(const char* name, const char* value) {
  amqp_table_entry_t entry{};
  entry.key = bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = bytes(value);
  return entry;
}

/// A connection with one channel.
class RabbitConnection {
 public:
  explicit RabbitConnection(const std::string& url) {
    FieldErrors errors;
    const auto endpoints = sink::parse_endpoints("url", url, kRabbitSchemes, errors);
    must(errors.status());
    const sink::Endpoint& server = endpoints.front();
    amqp_socket_t* const socket = amqp_tcp_socket_new(get());
    if (socket == nullptr || amqp_socket_open_noblock(socket, server.host.c_str(), server.port,
                                                      &kLimit) != AMQP_STATUS_OK)
      give_up(Errc::unavailable, "rabbitmq: cannot connect to " + server.shown());
    const std::string user = server.username.empty() ? "guest" : server.username;
    const std::string password = server.password.empty() ? "guest" : server.password;
    const std::string host = server.path.empty() ? "/" : server.path;
    check(amqp_login(get(), host.c_str(), 0, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN,
                     user.c_str(), password.c_str()),
          "login");
    amqp_channel_open(get(), kChannel);
    check_last("channel");
  }
  RabbitConnection(const RabbitConnection&) = delete;
  RabbitConnection& operator=(const RabbitConnection&) = delete;
  RabbitConnection(RabbitConnection&&) = delete;
  RabbitConnection& operator=(RabbitConnection&&) = delete;
  ~RabbitConnection() { amqp_destroy_connection(connection_); }

  [[nodiscard]] amqp_connection_state_t get() const { return connection_; }
  static void check(const amqp_rpc_reply_t& reply, const std::string& what) {
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
      give_up(Errc::unavailable, "rabbitmq: " + what + " failed");
  }
  void check_last(const std::string& what) const { check(amqp_get_rpc_reply(get()), what); }

 private:
  const amqp_connection_state_t connection_{amqp_new_connection()};
};

class Publisher {
 public:
  explicit Publisher(const std::string& url) : connection_(url) {
    amqp_confirm_select(connection_.get(), kChannel);
    connection_.check_last("confirm.select");
  }

  void send(const std::string& queue, const std::string& message) {
    const std::string id = EventId::generate().str();
    amqp_basic_properties_t properties{};
    properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
    properties.delivery_mode = AMQP_DELIVERY_PERSISTENT;
    properties.message_id = bytes(id);
    if (amqp_basic_publish(connection_.get(), kChannel, amqp_empty_bytes, bytes(queue), 1, 0,
                           &properties, bytes(message)) != AMQP_STATUS_OK)
      give_up(Errc::unavailable, "rabbitmq: publishing failed");
    in_flight_.insert(++last_);
    take(timeval{});
    while (in_flight_.size() >= kMostRabbitInFlight) take(kLimit);
  }
  void flush() {
    while (!in_flight_.empty()) take(kLimit);
  }

 private:
  /// Takes the confirmations that have come, and waits for the first one.
  void take(timeval wait) {
    amqp_frame_t frame;
    while (true) {
      amqp_maybe_release_buffers(connection_.get());
      const int status = amqp_simple_wait_frame_noblock(connection_.get(), &frame, &wait);
      if (status == AMQP_STATUS_TIMEOUT && (wait.tv_sec == 0)) return;
      if (status != AMQP_STATUS_OK || frame.frame_type != AMQP_FRAME_METHOD ||
          frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
        give_up(Errc::unavailable, "rabbitmq: a message was not confirmed");
      const auto& ack = *static_cast<amqp_basic_ack_t*>(frame.payload.method.decoded);
      if (ack.multiple != 0) {
        in_flight_.erase(in_flight_.begin(), in_flight_.upper_bound(ack.delivery_tag));
      } else {
        in_flight_.erase(ack.delivery_tag);
      }
      wait = timeval{};
    }
  }

  RabbitConnection connection_;
  std::uint64_t last_{0};
  std::set<std::uint64_t> in_flight_;
};

class Consumer {
 public:
  Consumer(const std::string& url, const std::string& queue, bool stream) : connection_(url) {
    amqp_basic_qos(connection_.get(), kChannel, 0, kPrefetch, 0);
    connection_.check_last("qos");
    amqp_table_entry_t offset = text_entry("x-stream-offset", "first");
    amqp_basic_consume(connection_.get(), kChannel, bytes(queue), amqp_empty_bytes, 0, 0, 0,
                       {.num_entries = stream ? 1 : 0, .entries = &offset});
    connection_.check_last("consume");
  }
  void read(const Destination::Each& each, std::chrono::milliseconds wait) {
    timeval limit{.tv_sec = wait.count() / 1000, .tv_usec = wait.count() % 1000 * 1000};
    while (true) {
      amqp_maybe_release_buffers(connection_.get());
      amqp_envelope_t envelope;
      const auto reply = amqp_consume_message(connection_.get(), &envelope, &limit, 0);
      if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
          reply.library_error == AMQP_STATUS_TIMEOUT)
        return;
      RabbitConnection::check(reply, "reading");
      each({static_cast<const char*>(envelope.message.body.bytes), envelope.message.body.len});
      const std::uint64_t tag = envelope.delivery_tag;
      amqp_destroy_envelope(&envelope);
      if (tag % (kPrefetch / 2) == 0) amqp_basic_ack(connection_.get(), kChannel, tag, 1);
      limit = timeval{};
    }
  }

 private:
  RabbitConnection connection_;
};

class RabbitDestination final : public Destination {
 public:
  RabbitDestination(std::string queue, std::string url, std::string type)
      : queue_(std::move(queue)), url_(std::move(url)), type_(std::move(type)), connection_(url_) {}
  ~RabbitDestination() override {
    if (made_) amqp_queue_delete(connection_.get(), kChannel, bytes(queue_), 0, 0);
  }

  void open() override {
    amqp_table_entry_t type = text_entry("x-queue-type", type_.c_str());
    declare({.num_entries = 1, .entries = &type}, false);
    made_ = true;
  }
  void keep() override { made_ = false; }
  SubscriptionSpec subscription(const std::string& name) const override {
    SubscriptionSpec spec{.name = name, .sink = "rabbitmq"};
    spec.topic = literal(queue_);
    spec.sink_settings["url"] = literal(url_);
    spec.sink_settings["queue"] = queue_;
    return spec;
  }
  void read(const Each& each, std::chrono::milliseconds wait) override {
    if (!consumer_) consumer_.emplace(url_, queue_, type_ == "stream");
    consumer_->read(each, wait);
  }
  std::size_t count() override { return declare(amqp_empty_table, true); }
  void send(const std::string& /*key*/, const std::string& message) override {
    if (!publisher_) publisher_.emplace(url_);
    publisher_->send(queue_, message);
  }
  void flush() override {
    if (publisher_) publisher_->flush();
  }
  std::string place() const override { return "RabbitMQ queue " + queue_; }

 private:
  std::size_t declare(amqp_table_t arguments, bool passive) {
    const amqp_queue_declare_ok_t* const done = amqp_queue_declare(
        connection_.get(), kChannel, bytes(queue_), passive ? 1 : 0, 1, 0, 0, arguments);
    connection_.check_last("declaring " + queue_);
    return done->message_count;
  }

  const std::string queue_;
  const std::string url_;
  const std::string type_;
  RabbitConnection connection_;
  std::optional<Publisher> publisher_;
  std::optional<Consumer> consumer_;
  bool made_{false};
};

}  // namespace

std::unique_ptr<Destination> rabbitmq_destination(const std::string& queue,
                                                  const std::string& url) {
  return std::make_unique<RabbitDestination>(queue, url, "quorum");
}
std::unique_ptr<Destination> rabbitmq_stream_destination(const std::string& queue,
                                                         const std::string& url) {
  return std::make_unique<RabbitDestination>(queue, url, "stream");
}

}  // namespace outbox::test
