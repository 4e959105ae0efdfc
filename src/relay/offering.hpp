// Offers a batch to a sink. A gapless sink ends a send() at a message that it refuses by itself
// (Outcome::unsent). The rest is then offered in further calls, except later events of the same
// key, which are kept back: docs/design/parking.md, "The stream".
#pragma once

#include <cstddef>
#include <cstdint>
#include <outbox/sink.hpp>
#include <span>
#include <vector>

namespace outbox::relay {

class Offering {
 public:
  /// `parks` says whether refused events will be parked. If not, the subscription stops at a
  /// refused event, and nothing is offered behind it. `sink` must outlive this object.
  Offering(Sink& sink, bool parks) : sink_(sink), goes_on_(parks && sink.traits().gapless) {}

  /// Returns how many messages are dealt with: the sink has taken them, or they are kept back. The
  /// others were not taken. Appends the outcomes that came meanwhile.
  [[nodiscard]] std::size_t offer(std::span<const Message> messages,
                                  std::vector<Outcome>& outcomes);
  /// The messages of the last offer that were not given to the sink, since it refused an earlier
  /// event of their key.
  [[nodiscard]] const std::vector<Token>& kept_back() const { return kept_back_; }

 private:
  void keep_back_key(std::span<const Message> messages, std::size_t refused);

  Sink& sink_;
  const bool goes_on_;
  std::vector<Token> kept_back_;
  // For each place in the batch: the hash of the event's key (empty until an event is refused), and
  // whether the event is kept back.
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint8_t> keeps_back_;
};

}  // namespace outbox::relay
