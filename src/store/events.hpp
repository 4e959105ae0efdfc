// Events of the log and what became of each in every subscription, for people (docs/design/status.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <vector>

#include "store/part.hpp"

namespace outbox::store {

/// Which events; what is not given does not matter.
struct EventFilter {
  std::optional<EventId> id{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  /// By created_at, from and before. Unit: microseconds since 1970, UTC, as all times here.
  std::optional<std::int64_t> since_us{};
  std::optional<std::int64_t> until_us{};
};

/// What became of an event in one subscription.
struct EventLife {
  std::string subscription{};
  /// pending: not passed yet. published. filtered. skipped: the subscription began after it. retrying, waiting, dead: parked.
  /// discarded, edited: parked, until a person ended that. The words are frozen.
  std::string state{};
  bool apart{
      false};  ///< A task that a subscription of its type delivers, not this one of its queue.
  /// Of `published`: accepted between created_at and this.
  std::optional<std::int64_t> published_by_us{};
  // Of an event that is or was parked:
  std::optional<std::int32_t> attempts{};
  std::optional<std::int64_t> next_attempt_at_us{};  ///< Of `retrying`.
  std::string error{};
  std::optional<EventId> waiting_for{};  ///< Of `waiting`: the first parked event of its key.
  std::optional<std::int64_t> waiting_for_seq{};
  std::string ended_by{};
  std::string reason{};
  std::optional<EventId> replaced_by{};  ///< Of `edited`: its corrected copy.
};

struct EventListing {
  std::int64_t seq{0};
  EventId id{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  std::string content_type{};
  std::int64_t created_at_us{0};
  std::optional<std::int64_t> occurred_at_us{};
  /// False: a corrected copy of a parked event, or one that was removed from the log since it was parked.
  bool in_log{true};
  std::vector<EventLife> subscriptions{};
  // Only with `whole`:
  std::string payload{};
  std::string headers{};  ///< A JSON object.
};

struct EventPage {
  std::vector<EventListing> events;
  /// False: there may be older ones beyond those that were looked at.
  bool complete{true};
};

/// Events that are looked at, at most, where no index leads to those that are wanted.
inline constexpr std::int64_t kMostSearched = 1'000'000;

/// One thread at a time.
class Events : public Part {
 public:
  /// The newest first, at most `limit`. By id also those that are only known as parked. `whole`: with payload and headers.
  [[nodiscard]] virtual Result<EventPage> list(const EventFilter& filter, std::size_t limit,
                                               bool whole) = 0;
};

}  // namespace outbox::store
