// What sinks with a network client have in common; docs/design/sinks.md has the states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <outbox/sink.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sink/inspection.hpp"

namespace outbox::sink {

/// Keeps outcomes until the relay takes them.
class NetworkSink : public Sink, public OverNetwork {
 public:
  explicit NetworkSink(std::string name) : warned_(std::move(name)) {}

  void receive(std::vector<Outcome>& outcomes) final;
  /// What the open destination is, and what the settings promise there. Only while it is open.
  [[nodiscard]] virtual Inspection inspection() const = 0;
  [[nodiscard]] bool is_insecure() const final { return insecure_; }

 protected:
  /// Processes what the client has received, and watches the deadlines.
  virtual void advance() = 0;
  void report(Outcome outcome) { ready_.push_back(std::move(outcome)); }
  /// Reports an outcome for a message that is not sent. If `rejected`, the client never got it.
  void refuse(const Message& message, Outcome::Kind kind, Error error);
  /// Called by open(). Warns of each weakness once, although the sink is opened again and again.
  void warn_about(const Inspection& found) { warn_about(found.destination, found.weaknesses); }
  /// `place` is the server, or the stream on it.
  void warn_about(std::string_view place, const std::vector<Weakness>& found) {
    warned_.warn(place, found);
    insecure_ = sink::is_insecure(found);
  }

 private:
  std::vector<Outcome> ready_;
  WeaknessLog warned_;
  /// As of the last open(): the connection may be gone by now.
  bool insecure_{false};
};

/// Opens the sink, inspects it and closes it.
[[nodiscard]] Result<Inspection> inspect_open(NetworkSink& sink);

/// A sink with one connection, which is never repaired: after a failure the sink takes nothing, and
/// says why, until open() has made a new connection.
class ConnectionSink : public NetworkSink {
 public:
  using NetworkSink::NetworkSink;

  [[nodiscard]] std::size_t send(std::span<const Message> messages) final;

 protected:
  enum class State : std::uint8_t {
    closed,
    open,
    failed,  ///< Takes no more. Messages on a connection that still works get outcomes.
  };

  /// Called so that the sink notices a failure that arrived meanwhile.
  virtual void before_send() {}
  /// Takes messages while the state is `open`. Returns how many.
  [[nodiscard]] virtual std::size_t take(std::span<const Message> messages) = 0;
  /// Returns how many it took. The relay opens the sink again only after an outcome with a failure.
  [[nodiscard]] virtual std::size_t refuse_all(std::span<const Message> messages);
  /// Changes the state from `open` to `failed`.
  void stop_taking(Error reason);

  State state_{State::closed};
  Error reason_;  ///< Why the state is `failed`.
};

}  // namespace outbox::sink
