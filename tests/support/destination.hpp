// A destination of events, used through the plain client of the broker and not through our sinks.
// The demo and the benchmarks deliver to it, read it back, and send to it without an outbox. Throws
// Exception.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>

namespace outbox::test {

class Destination {
 public:
  using Each = std::function<void(std::string_view message)>;

  Destination() = default;
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;
  Destination(Destination&&) = delete;
  Destination& operator=(Destination&&) = delete;
  virtual ~Destination() = default;

  /// Makes what sending requires. It is removed at the end unless it is kept.
  virtual void open() {}
  virtual void keep() {}
  /// A subscription that delivers here.
  [[nodiscard]] virtual SubscriptionSpec subscription(const std::string& name) const = 0;
  /// Calls `each` in order for every message that has arrived since the last call, or, in the first
  /// call, since the beginning. Waits at most this long for a message.
  virtual void read(const Each& each, std::chrono::milliseconds wait) = 0;
  /// How many messages it holds, as it reports itself.
  [[nodiscard]] virtual std::size_t count() = 0;
  /// Sends with the guarantees of our sink, many at a time. Waits if too many are not confirmed.
  virtual void send(const std::string& key, const std::string& message) = 0;
  /// Takes confirmations, unless the client does so by itself.
  virtual void poll() {}
  /// Waits until everything is confirmed.
  virtual void flush() {}
  /// Its name for the screen.
  [[nodiscard]] virtual std::string place() const = 0;
};

/// Makes the object for something that does not exist yet, unless another process has opened it.
/// `where` is file:PATH for JSON lines, kafka:TOPIC@BROKERS, redis:STREAM@URL, nats:STREAM@URL or
/// rabbitmq:QUEUE@URL. Reading a queue takes the messages out; rabbitmq-stream:QUEUE@URL can be
/// read again.
[[nodiscard]] std::unique_ptr<Destination> make_destination(const std::string& where);

}  // namespace outbox::test
