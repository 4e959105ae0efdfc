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

/// Outcomes wait in it until the relay takes them.
class NetworkSink : public Sink {
 public:
  explicit NetworkSink(std::string name) : warned_(std::move(name)) {}

  void receive(std::vector<Outcome>& outcomes) final;
  /// While it is open: what the destination is, and what the settings promise there.
  [[nodiscard]] virtual Inspection inspection() const = 0;

 protected:
  /// Takes what the client has to say, and looks at the deadlines.
  virtual void advance() = 0;
  void report(Outcome outcome) { ready_.push_back(std::move(outcome)); }
  /// Instead of sending it. `rejected`: before the client had any of it.
  void refuse(const Message& message, Outcome::Kind kind, Error error);
  /// Of each weakness once, although the sink is opened again and again.
  void warn_of(const Inspection& found) { warn_of(found.destination, found.weaknesses); }
  /// `place`: the server, or the stream on it.
  void warn_of(std::string_view place, const std::vector<Weakness>& found) {
    warned_.warn(place, found);
  }

 private:
  std::vector<Outcome> ready_;
  WeaknessLog warned_;
};

/// Opens the sink, inspects it and closes it.
[[nodiscard]] Result<Inspection> inspect_open(NetworkSink& sink);

/// Everything goes over one connection, which is never repaired: when it failed the sink takes no more, and says why, until open() has
/// made a new one.
class ConnectionSink : public NetworkSink {
 public:
  using NetworkSink::NetworkSink;

  [[nodiscard]] std::size_t send(std::span<const Message> messages) final;

 protected:
  enum class State : std::uint8_t {
    closed,
    open,
    failed,  ///< Takes no more. What is in flight on a connection that still works gets its outcomes.
  };

  /// What came meanwhile may say that it failed.
  virtual void before_send() {}
  /// The state is `open`. Returns how many it took.
  [[nodiscard]] virtual std::size_t take(std::span<const Message> messages) = 0;
  /// Returns how many it took: the relay opens the sink again only after an outcome that says that it failed.
  [[nodiscard]] virtual std::size_t refuse_all(std::span<const Message> messages);
  /// The state becomes `failed` if it was `open`.
  void stop_taking(Error reason);

  State state_{State::closed};
  Error reason_;  ///< Why the state is `failed`.
};

}  // namespace outbox::sink
