// Publishes events to JetStream. JetStream's answer to an event (PubAck) is its outcome. Many
// events are in flight, one of each key. A lost connection is not repaired: open() makes a new one.
// See docs/sinks/nats.md.
#pragma once

#include <map>
#include <memory>
#include <outbox/sink.hpp>
#include <string>
#include <vector>

#include "sink/nats/config.hpp"
#include "sink/nats/connection.hpp"
#include "sink/nats/stream_check.hpp"
#include "sink/network_sink.hpp"

namespace outbox::sink::nats {

class NatsSink final : public ConnectionSink {
 public:
  NatsSink(std::string subscription, NatsSettings settings, std::vector<Endpoint> servers);
  ~NatsSink() override;

  [[nodiscard]] SinkTraits traits() const noexcept override;
  [[nodiscard]] Status open() override;
  void purge() override;
  void close() noexcept override;

  /// What the last open() found.
  [[nodiscard]] Inspection inspection() const override { return inspection_; }

 private:
  using TimePoint = Connection::TimePoint;
  struct InFlight {
    Token token{0};
    std::string subject;
    TimePoint sent{};
    bool answered_by_other{false};  ///< Whether another program than JetStream answered.
  };

  void advance() override;
  void before_send() override { take_news(); }
  [[nodiscard]] std::size_t take(std::span<const Message> messages) override;

  [[nodiscard]] Status connect(TimePoint until);
  [[nodiscard]] Status connect_to(const Endpoint& server, TimePoint until);
  void leave();
  [[nodiscard]] Status check_destination(TimePoint until);

  void take_news();
  void settle(const News& news);
  void settle_answer(Number number, const Answer& answer);
  void settle_denied(const std::string& words);
  void watch_deadline(TimePoint now);
  void settle_one(std::map<Number, InFlight>::iterator entry, Outcome::Kind kind, Error error);
  void fail_all(Error reason);
  void give_up(const Error& reason);

  const std::string subscription_;
  const NatsSettings settings_;
  const std::vector<Endpoint> servers_;

  std::shared_ptr<Connection> connection_;
  /// Earlier connections whose thread may still hang in the client.
  std::vector<std::weak_ptr<Connection>> left_;
  std::size_t next_server_{0};
  bool doubtful_{false};  ///< Whether an event was blocked since the destination was checked.
  std::map<Number, InFlight> in_flight_;  ///< Ordered by age, the oldest first.
  Number last_number_{0};
  TimePoint answered_{};  ///< When the last answer came.
  Inspection inspection_;
};

}  // namespace outbox::sink::nats
