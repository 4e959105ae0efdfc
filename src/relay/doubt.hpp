// Whose fault it was that an event failed with `unknown` or `retry`. It was the event's own fault
// only if the outcomes of other events before and after it were acks, because in an outage every
// outcome is a failure. Pure.
// docs/design/parking.md, "An event that fails while others succeed".
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace outbox::relay {

enum class Fault : std::uint8_t {
  open,         ///< No other outcome has come since.
  event,        ///< Other events succeeded before and after it.
  destination,  ///< It is the destination's fault, or cannot be told from that.
};

class Doubt {
 public:
  Doubt() = default;
  [[nodiscard]] Fault fault() const { return !after_ack_ || !next_ ? Fault::destination : *next_; }

 private:
  friend class Neighbours;
  Doubt(bool after_ack, std::shared_ptr<const Fault> next)
      : after_ack_(after_ack), next_(std::move(next)) {}

  bool after_ack_{false};
  std::shared_ptr<const Fault> next_;
};

/// The outcomes of a sink, in the order in which they come.
class Neighbours {
 public:
  void acked() { came(Fault::event); }
  /// An event failed that is not in doubt itself, or the destination failed.
  void failed() { came(Fault::destination); }
  /// An event failed, and it is in doubt whose fault that is. A `suspect` has failed by its own
  /// fault before, so that its next failure says nothing about other events.
  [[nodiscard]] Doubt doubted(bool suspect) {
    const bool after_ack = last_was_ack_;
    if (!suspect) failed();
    if (!next_) next_ = std::make_shared<Fault>(Fault::open);
    return {after_ack, next_};
  }
  [[nodiscard]] bool last_was_ack() const { return last_was_ack_; }

 private:
  void came(Fault answer) {
    last_was_ack_ = answer == Fault::event;
    if (!next_) return;
    *next_ = answer;
    next_.reset();
  }

  bool last_was_ack_{false};
  std::shared_ptr<Fault> next_;  ///< What the next outcome says about the events in doubt.
};

}  // namespace outbox::relay
