// What relays record of their runs, so that an event that kills them is found (docs/design/trials.md). A row per strand and run; nothing
// per event but while one is tried alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "store/cursor.hpp"
#include "store/lane_owners.hpp"
#include "store/part.hpp"

namespace outbox::store {

/// How the trouble of a subscription begins that is on trial (store/catalog.hpp).
inline constexpr std::string_view kOnTrial = "on trial: ";

/// A run that is over, on some of the lanes that were asked about.
struct FormerRun {
  std::int64_t generation{0};
  LaneMask lanes{0};
  std::string place;     ///< Where the cursor of the strand stood when the run began.
  std::size_t range{0};  ///< How many events were on trial when it ended; 0: none.
  std::int64_t seq{0};   ///< The first of them; 0: none of them was sent.
  bool parked{false};    ///< That event is parked.
  bool alive{false};     ///< No death: the run ended in order during a trial, or its relay lives.
  bool counted{false};   ///< A later run on these lanes has begun since.
};

/// One thread at a time. All is committed, and flushed, on return.
class Trials : public Part {
 public:
  /// The runs that others have left on these lanes, and those that `relay` itself has left. The newest comes first.
  [[nodiscard]] virtual Result<std::vector<FormerRun>> former(std::int32_t subscription,
                                                              LaneMask lanes,
                                                              const EventId& relay) = 0;
  /// A run begins, under a generation that owns the lanes. A `range` of events is on trial before the first one is sent. Of the former
  /// runs on these lanes those of the generations `keep` are kept, and count as seen.
  [[nodiscard]] virtual Status begin(std::int32_t subscription, const Holding& holding,
                                     const EventId& relay, const std::string& place,
                                     std::size_t range, const std::vector<std::int64_t>& keep) = 0;
  struct Range {
    LaneMask lanes{0};  ///< Where its events are.
    std::size_t events{0};
    std::int64_t seq{0};  ///< The first of them.
  };
  /// Events are sent on trial next; those before have survived. Returns the generations of the former runs on the lanes that are held
  /// which ended by a death, for all that is known by now.
  [[nodiscard]] virtual Result<std::vector<std::int64_t>> open(std::int32_t subscription,
                                                               const Holding& holding,
                                                               const Range& range) = 0;
  /// The trial is over, and the run goes on. Former runs are forgotten, except those of the generations `keep` that died of one event.
  [[nodiscard]] virtual Status close(std::int32_t subscription, const Holding& holding,
                                     const std::vector<std::int64_t>& keep) = 0;
  /// The run ends in order. If a trial goes on, the next run on these lanes continues it.
  [[nodiscard]] virtual Status end(std::int32_t subscription, const Holding& holding) = 0;
};

}  // namespace outbox::store
