// Adds events to Redis Streams, pipelined over one connection. Not gapless: the relay keeps one event of a key in flight. A connection
// that failed is not repaired: its messages get outcomes, open() makes a new one. See docs/sinks/redis.md, and docs/design/sinks.md
// for the states.
#pragma once

#include <chrono>
#include <memory>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

#include "sink/redis/command.hpp"
#include "sink/redis/config.hpp"
#include "sink/redis/connection.hpp"
#include "sink/redis/in_flight.hpp"
#include "sink/redis/session.hpp"
#include "sink/socket_watch.hpp"

namespace outbox::sink::redis {

class RedisSink final : public Sink {
 public:
  explicit RedisSink(RedisOptions options);
  ~RedisSink() override;

  [[nodiscard]] SinkTraits traits() const noexcept override;
  [[nodiscard]] Status open() override;
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void receive(std::vector<Outcome>& outcomes) override;
  void purge() override;
  void close() noexcept override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class State : std::uint8_t {
    closed,
    open,
    failed,  ///< Takes no more; on a connection that still works, what is in flight gets its answers.
  };

  [[nodiscard]] bool has_room();
  void add(const Message& message);
  void add_wait();
  void refuse(const Message& message, Outcome::Kind kind, Error error);

  void write_out();
  void take_answers();
  void settle(const redisReply& reply);
  void added(Token token);
  void not_added(const InFlight::Entry& entry, const redisReply& reply);
  void confirm(const redisReply& wait);
  void watch_deadline();
  void watch_socket();

  void stop_taking(Error reason);
  void lose(Error error);
  void drop_connection() noexcept;

  const RedisOptions options_;
  const std::string wait_replicas_;
  const std::string wait_timeout_;
  Command command_;

  State state_{State::closed};
  Session session_;  ///< Without a connection if there is none.
  InFlight in_flight_;
  std::vector<Outcome> ready_;
  Error reason_;  ///< Why the state is `failed`.
  TimePoint
      progress_{};  ///< Of the last answer or byte that the server took, or when something was sent while nothing was in flight.
  WeaknessLog weaknesses_{"redis"};
  SocketWatch watch_;
};

}  // namespace outbox::sink::redis
