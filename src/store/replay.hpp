// Replays: events of a subscription that are sent again (docs/design/replay.md). Live progress is not touched by them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/interface.hpp"
#include "store/settlement.hpp"

namespace outbox::store {

/// Stored as text; the words are frozen.
enum class ReplayState : std::uint8_t {
  loading,  ///< Its events are being copied from an archive.
  running,
  stopped,  ///< By a person, or because an event was rejected. Can be resumed.
  done,
};
[[nodiscard]] const char* to_string(ReplayState state) noexcept;
/// A word that this version does not know counts as stopped.
[[nodiscard]] ReplayState replay_state_of(std::string_view word) noexcept;

/// A replay ends itself when it has skipped so many events: then the destination or the replay is at fault.
inline constexpr std::int64_t kMostSkipped = 10'000;

struct Replay {
  std::int64_t id{0};
  std::int32_t subscription{0};
  std::int64_t first{0};  ///< The first and the last seq.
  std::int64_t last{0};
  std::string filter{};  ///< event/replay_filter.hpp, as JSON.
  /// Its events were copied from an archive into the store; else they are those of the log.
  bool archived{false};
  ReplayState state{ReplayState::running};
  std::string actor{};   ///< Who started it.
  std::string reason{};  ///< Why it stopped.
  std::int64_t started_at_us{0};
  std::int64_t ended_at_us{0};  ///< 0: not yet.
  // How far it is:
  std::int64_t position{0};  ///< Of the lanes that are the least far.
  std::int64_t sent{0};
  std::int64_t skipped{0};
};

/// An event that a replay did not send.
struct ReplaySkip {
  std::int64_t seq{0};
  EventId id{};
  std::string error{};  ///< Empty: it is behind a skipped one of its key.
  // The store's, from the event: what follows of the key is skipped, too.
  std::string aggregate_type{};
  std::string aggregate_id{};
};

/// What a replay did on some lanes, up to `position`. Counts only under the generation that owns the lanes.
struct ReplayProgress {
  std::int64_t replay{0};
  std::int32_t subscription{0};
  std::int64_t generation{0};
  LaneMask lanes{0};
  std::int64_t position{0};
  std::int64_t sent{0};
  std::vector<ReplaySkip> skips{};
};

/// Lanes that a replay has brought to one position.
struct ReplayPlace {
  LaneMask lanes{0};
  std::int64_t position{0};
};

/// What a replay reads next, on lanes with one live cursor and one position.
struct ReplayRequest {
  std::int64_t replay{0};
  std::int32_t subscription{0};
  bool archived{false};
  LaneMask lanes{kAllLanes};
  Cursor live{};  ///< Nothing beyond it was delivered, so nothing beyond it is sent again.
  std::int64_t position{0};
  std::int64_t last{0};
  std::size_t rows{1000};
  std::size_t bytes{std::size_t{4} << 20U};
  bool whole{true};  ///< With payloads.
};

/// Rows that live delivery has passed, in the order of seq.
struct ReplayPage {
  std::vector<EventView> events{};
  /// By event: it is parked now, or a person discarded or corrected it. Not sent again.
  std::vector<std::uint8_t> held{};
  std::int64_t position{0};  ///< Where the next page begins.
  bool ended{false};         ///< There are no more.
  std::size_t bytes{0};
  std::shared_ptr<const void> storage{};
};

/// What the log still has.
struct RetainedLog {
  std::int64_t first{1};     ///< Nothing was removed from here on.
  bool removed{false};       ///< Something was, before.
  std::int64_t first_us{0};  ///< When the first event was written; 0: there is none.
  std::int64_t last{0};      ///< The newest seq.
};

/// One thread at a time.
class Replays : public Interface {
 public:
  [[nodiscard]] virtual Result<RetainedLog> retained() = 0;
  /// The first seq that was written then or later. Unit: microseconds since 1970, UTC.
  [[nodiscard]] virtual Result<std::int64_t> seq_at(std::int64_t time_us) = 0;
  /// Starts it (`loading` if it is archived) and returns its id. Refused while another one of the subscription is running, and when it
  /// begins before what is retained.
  [[nodiscard]] virtual Result<std::int64_t> start(const Replay& replay) = 0;
  /// Adds events to one that is loading; those that the log still has, or that were added before, are left out. Returns how many were
  /// added.
  [[nodiscard]] virtual Result<std::int64_t> load(std::int64_t replay,
                                                  std::span<const EventView> events) = 0;
  /// Ends the loading: its relays may begin.
  [[nodiscard]] virtual Status loaded(std::int64_t replay) = 0;
  /// One that is running; one that is loading is removed. False: it is neither.
  [[nodiscard]] virtual Result<bool> stop(std::int64_t replay, std::string_view reason) = 0;
  /// One that was stopped, under the conditions of start().
  [[nodiscard]] virtual Status resume(std::int64_t replay) = 0;
  /// The newest first, at most `limit`; `subscription` 0: of all.
  [[nodiscard]] virtual Result<std::vector<Replay>> list(std::int32_t subscription,
                                                         std::size_t limit) = 0;
  [[nodiscard]] virtual Result<std::optional<Replay>> find(std::int64_t replay) = 0;
  /// What it did not send, in the order of seq.
  [[nodiscard]] virtual Result<std::vector<ReplaySkip>> skips(std::int64_t replay,
                                                              std::size_t limit) = 0;

  // For those who carry it out.

  /// Where these lanes are. Lanes that have not begun are at the place before the first seq.
  [[nodiscard]] virtual Result<std::vector<ReplayPlace>> places(const Replay& replay,
                                                                LaneMask lanes) = 0;
  [[nodiscard]] virtual Result<ReplayPage> page(const ReplayRequest& request) = 0;
};

// What both stores say.
[[nodiscard]] tl::unexpected<Error> begins_too_early(std::int64_t first, const RetainedLog& log);
[[nodiscard]] tl::unexpected<Error> another_is_running();
[[nodiscard]] tl::unexpected<Error> not_stopped(std::int64_t replay);

/// Each of these lanes at the greatest position of the places that have it, else at `start`; lanes at one position together.
[[nodiscard]] std::vector<ReplayPlace> places_of(const std::vector<ReplayPlace>& rows,
                                                 std::int64_t start, LaneMask lanes);

}  // namespace outbox::store
