// Parked events for people: to look at, to send again, to give up (docs/design/parking.md, "Who writes the rows").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/parked.hpp"
#include "store/part.hpp"

namespace outbox::store {

/// Which parked events; what is not given does not matter.
struct ParkedFilter {
  std::optional<std::int32_t> subscription{};
  std::optional<ParkedState> state{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  std::string error{};  ///< Part of the error's text.
  std::optional<bool>
      scheduled{};  ///< Tasks that wait for the time of their execute_at, or all others.
  std::optional<EventId> id{};
  std::optional<std::int64_t> seq{};
  /// Only what comes after it, by subscription and seq: the next page.
  std::optional<std::pair<std::int32_t, std::int64_t>> after{};
};

struct ParkedListing {
  std::int32_t subscription{0};
  std::int64_t seq{0};
  EventId id{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  ParkedState state{ParkedState::retrying};
  std::size_t attempts{0};
  std::string error{};
  std::int64_t parked_at_us{0};        ///< Microseconds since 1970, UTC, as all times here.
  std::int64_t next_attempt_at_us{0};  ///< Of `retrying`.
  std::int64_t created_at_us{0};
  bool scheduled{
      false};  ///< A task that is `retrying` since the time of its execute_at has not come.
  // Of `running`:
  std::string worker{};  ///< Its name; empty: it has left.
  std::optional<std::int64_t> begun_at_us{};
  std::optional<std::int64_t> percent{};
  std::string progress{};
  // Only with `whole`:
  std::string payload{};
  std::string content_type{};
  std::string headers{};  ///< A JSON object.
};

struct ParkedCounts {
  std::int64_t retrying{0};
  std::int64_t waiting{0};
  std::int64_t dead{0};
};

/// A corrected copy that takes the place of a parked event.
struct ParkedEdit {
  std::int32_t subscription{0};
  std::int64_t seq{0};
  EventId id{};      ///< Of the event as it is.
  EventId new_id{};  ///< Of the copy.
  std::string event_type{};
  std::string payload{};
  std::string content_type{};
  std::string headers{};  ///< A JSON object.
  std::string actor{};
  std::string reason{};
};

enum class ParkedOutcome : std::uint8_t { delivered, discarded, edited };
[[nodiscard]] const char* to_string(ParkedOutcome outcome) noexcept;

/// Most events that retry() and discard() take: their transactions must be short, since the relay waits for them.
inline constexpr std::size_t kMostChanged = 1000;

/// One thread at a time. What changes rows is one transaction, and the relay notices within a second.
class ParkedEvents : public Part {
 public:
  /// In the order of subscription and seq, at most `limit`. `whole`: with payload and headers.
  [[nodiscard]] virtual Result<std::vector<ParkedListing>> list(const ParkedFilter& filter,
                                                                std::size_t limit, bool whole) = 0;
  [[nodiscard]] virtual Result<ParkedCounts> counts(std::int32_t subscription) = 0;
  /// Sends them again at once, or when it is their turn in their key. Returns how many there were.
  [[nodiscard]] virtual Result<std::size_t> retry(std::int32_t subscription,
                                                  std::span<const std::int64_t> seqs,
                                                  bool keep_attempts) = 0;
  /// Removes them for good: they are never delivered. Returns how many there were.
  [[nodiscard]] virtual Result<std::size_t> discard(std::int32_t subscription,
                                                    std::span<const std::int64_t> seqs,
                                                    std::string_view actor,
                                                    std::string_view reason) = 0;
  /// The copy is sent now, before what waits behind the event. Refused while another event of its key is before it, and while a live
  /// relay may be sending it.
  [[nodiscard]] virtual Status edit(const ParkedEdit& edit) = 0;
};

}  // namespace outbox::store
