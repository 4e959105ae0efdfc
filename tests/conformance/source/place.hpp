// A place at a broker that a consumer reads, for the suite of sources: a topic, a queue or a
// stream, written through the plain client of the broker and not through our sinks.
#pragma once

#include <memory>
#include <outbox/consumer.hpp>
#include <outbox/event.hpp>
#include <string>
#include <vector>

namespace outbox::conformance {

struct Sent {
  std::string key{};
  std::string payload{};
  std::vector<Header> headers{};
};

/// Throws Exception.
class Place {
 public:
  Place() = default;
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  Place(Place&&) = delete;
  Place& operator=(Place&&) = delete;
  /// Removes what was made.
  virtual ~Place() = default;

  /// A consumer of this place, with a group that nobody else has.
  [[nodiscard]] virtual ConsumerSpec spec() const = 0;
  /// The same, with the broker behind this port of this machine.
  [[nodiscard]] virtual ConsumerSpec spec_at(int port) const = 0;
  /// The broker's port.
  [[nodiscard]] virtual int port() const = 0;
  /// A consumer of a place that does not exist.
  [[nodiscard]] virtual ConsumerSpec nowhere() const = 0;
  /// Returns when the broker has all of them. Messages of one key are kept in this order.
  virtual void send(const std::vector<Sent>& messages) = 0;
  /// Makes the broker take messages back sooner from a consumer of `spec` that is killed and
  /// started again, one at a time.
  virtual void take_back_soon(ConsumerSpec& /*spec*/) {}
  /// Returns when the broker would find the place again after it was killed.
  virtual void wait_until_kept() {}
};

/// Makes an empty place with at least two parts, if the broker has parts. Null with a skipped test
/// if the broker is missing.
[[nodiscard]] std::unique_ptr<Place> make_place();
/// What the broker cannot do, whatever the consumer does.
struct Limits {
  /// Whether messages have keys and headers.
  bool keys{true};
  bool headers{true};
  /// Whether a consumer that joins its group later gets what others had not acknowledged, in order.
  bool ordered_after_takeover{true};
  /// Whether the members of a group share it by parts, so that several keep the order.
  bool parts{false};
  /// Whether one member that follows another one which was killed keeps the order.
  bool ordered_after_kill{false};
  /// Whether ConsumerSpec::start says where a new group begins.
  bool start{true};
  bool lag{true};
  /// Whether open() fails for a place that does not exist, instead of waiting for it.
  bool needs_place{true};
};
[[nodiscard]] Limits limits();
/// The environment variable of the broker, and what it is, for the message of a skipped test.
[[nodiscard]] const char* variable();

}  // namespace outbox::conformance
