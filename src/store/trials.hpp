// What a relay records to find an event that kills it (docs/design/parking.md, "An event that kills the relay"). Nothing is written per
// event but while a trial goes on.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <vector>

#include "store/cursor.hpp"
#include "store/lane_owners.hpp"
#include "store/part.hpp"

namespace outbox::store {

/// An event that was on trial when a relay died.
struct TriedEvent {
  std::int64_t seq{0};
  std::size_t deaths{0};
  bool newest{
      false};  ///< The last relay that had these lanes died of it, and nobody has counted that yet.
};

/// What the relays before left behind on some lanes of a subscription.
struct Trial {
  std::size_t deaths{0};  ///< In a row, with nothing delivered in between.
  std::vector<TriedEvent> events;
};

/// One thread at a time. All is committed, and flushed, on return.
class Trials : public Part {
 public:
  /// A relay begins to deliver, under a generation that owns the lanes. `place`: where the cursors stand. What the relay before it has
  /// not ended was ended by a death, unless it is the same relay.
  [[nodiscard]] virtual Result<Trial> begin(std::int32_t subscription, const Holding& holding,
                                            const EventId& relay, const std::string& place) = 0;
  /// This event is sent next. The one before it has survived.
  [[nodiscard]] virtual Status open(std::int32_t subscription, const Holding& holding,
                                    std::int64_t seq) = 0;
  /// The events on trial have survived; nothing more is sent.
  [[nodiscard]] virtual Status end(std::int32_t subscription, const Holding& holding) = 0;
};

}  // namespace outbox::store
