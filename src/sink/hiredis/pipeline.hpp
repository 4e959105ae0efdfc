// Runs a script on a Redis server for each event, pipelined over one connection. The sinks redis
// and asynq use it and differ in their Purpose and Calls. It is not gapless: the relay keeps one
// event of a key in flight. A failed connection is not repaired: its messages get outcomes, and
// open() makes a new one. docs/design/sinks.md has the states.
#pragma once

#include <chrono>
#include <memory>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

#include "sink/hiredis/connection.hpp"
#include "sink/hiredis/in_flight.hpp"
#include "sink/hiredis/purpose.hpp"
#include "sink/hiredis/session.hpp"
#include "sink/hiredis/settings.hpp"
#include "sink/network_sink.hpp"
#include "sink/socket_watch.hpp"

namespace outbox::sink::hiredis {

class PipelineSink final : public ConnectionSink {
 public:
  PipelineSink(ServerOptions options, Purpose purpose, std::unique_ptr<Calls> calls);
  ~PipelineSink() override;

  [[nodiscard]] SinkTraits traits() const noexcept override;
  [[nodiscard]] Status open() override;
  void purge() override;
  void close() noexcept override;
  [[nodiscard]] Inspection inspection() const override { return session_.inspection; }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void advance() override;
  [[nodiscard]] std::size_t take(std::span<const Message> messages) override;
  [[nodiscard]] bool has_room();
  void add(const Message& message);
  void add_wait();

  void write_out();
  void take_answers();
  void settle(const redisReply& reply);
  void prepared(const InFlight::Entry& entry, const redisReply& reply);
  void added(Token token);
  void not_added(const InFlight::Entry& entry, const redisReply& reply);
  void confirm(const redisReply& wait);
  void watch_deadline();
  void watch_socket();

  void lose(Error error);
  void drop_connection() noexcept;

  const ServerOptions options_;
  const Purpose purpose_;
  const std::unique_ptr<Calls> calls_;
  const std::string wait_replicas_;
  const std::string wait_timeout_;

  Session session_;  ///< Has no connection while the sink is not open.
  InFlight in_flight_;
  /// Whether a command that had to run before an event (Call::first) failed on this connection.
  bool first_failed_{false};
  /// When the last answer came or the server last took a byte, or when something was sent while
  /// nothing was in flight.
  TimePoint progress_{};
  SocketWatch watch_;
};

}  // namespace outbox::sink::hiredis
