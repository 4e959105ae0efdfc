// Publishes events to RabbitMQ over one connection with one channel in confirm mode. The sink is
// not gapless: the relay keeps one event of a key in flight. A failed connection is not repaired:
// its messages get outcomes, and open() makes a new one. See docs/sinks/rabbitmq.md, and
// docs/design/sinks.md for the states.
//
// librabbitmq's functions for sending block while the server does not read, and then do not read
// why. So only its parser is used (frames.hpp), and the relay's thread never waits for the network.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sink/network_sink.hpp"
#include "sink/rabbitmq/config.hpp"
#include "sink/rabbitmq/connection.hpp"
#include "sink/rabbitmq/error_map.hpp"
#include "sink/rabbitmq/outstanding.hpp"
#include "sink/rabbitmq/publication.hpp"
#include "sink/socket_watch.hpp"
#include "sink/suspects.hpp"

namespace outbox::sink::rabbitmq {

class RabbitSink final : public ConnectionSink {
 public:
  explicit RabbitSink(RabbitOptions options);
  ~RabbitSink() override;

  [[nodiscard]] SinkTraits traits() const noexcept override;
  [[nodiscard]] Status open() override;
  void purge() override;
  void close() noexcept override;
  [[nodiscard]] Inspection inspection() const override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Channel : std::uint8_t { ready, opening, asking_for_confirms };

  void advance() override;

  // ---- sending
  void before_send() override;
  [[nodiscard]] std::size_t take(std::span<const Message> messages) override;
  [[nodiscard]] bool has_room(const Message& message);
  [[nodiscard]] bool must_go_alone(const Message& message) const;
  void add(const Message& message);
  void write_out();

  // ---- what the server says
  void take_frames();
  void take(const amqp_frame_t& frame);
  void take(const amqp_method_t& method);
  void acked(const amqp_basic_ack_t& ack);
  void nacked(const amqp_basic_nack_t& nack);
  void begin_return(const amqp_basic_return_t& method);
  void end_return(const amqp_frame_t& frame);
  void blocked(std::string_view reason);
  void unblocked();
  void channel_closed(const amqp_channel_close_t& close);
  void connection_closed(const amqp_connection_close_t& close);
  void open_channel_again();

  // ---- failing
  void watch_time();
  void give_up_while_blocked();
  void lose(const Error& reason);
  void resolve_all(Fault fault, const Error& reason);
  void resolve(const Outstanding::Entry& entry, Outcome::Kind kind, const Error& reason);
  void drop_connection() noexcept;
  [[nodiscard]] Error overdue(std::chrono::nanoseconds waited) const;

  void watch_socket();
  void look_at_queue(TimePoint until);
  [[nodiscard]] std::vector<Weakness> weaknesses() const;

  const RabbitOptions options_;
  Publication publication_;

  std::unique_ptr<Connection> connection_;
  Channel channel_{Channel::ready};
  Outstanding outstanding_;
  std::optional<std::string> blocked_by_;  ///< The server's reason while it takes nothing.

  /// What basic.return said, kept until the properties of that message come.
  struct Return {
    Error error;
    std::size_t route{0};  ///< The route as in Outstanding::Entry.
  };
  Return return_;
  /// The errors of messages that were returned and are not confirmed yet.
  std::unordered_map<Token, Error> returned_;

  bool alone_{false};       ///< Whether what is outstanding was sent alone.
  std::size_t largest_{0};  ///< The largest body that the server has taken.
  Suspects suspects_;
  /// When the last confirmation came or the socket last took a byte, or when something was sent
  /// while nothing was in flight.
  TimePoint progress_{};
  std::optional<std::vector<Weakness>> queue_weaknesses_;  ///< nullopt if it was not looked at.
  SocketWatch watch_;
};

}  // namespace outbox::sink::rabbitmq
