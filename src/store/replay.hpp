// Replays send events of a subscription again, beside its live delivery (docs/design/replay.md).
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

/// Stored as text: the words are frozen.
enum class ReplayState : std::uint8_t {
  loading,  ///< Its events are being copied from an archive.
  running,
  stopped,  ///< Stopped by a person, or because an event was rejected; it can be resumed.
  done,
};
[[nodiscard]] const char* to_string(ReplayState state) noexcept;
/// A word that this version does not know counts as stopped.
[[nodiscard]] ReplayState parse_replay_state(std::string_view word) noexcept;

/// A replay stops itself when it has skipped this many: it or the destination is at fault.
inline constexpr std::int64_t kMostSkipped = 10'000;

struct Replay {
  std::int64_t id{0};
  std::int32_t subscription{0};
  std::int64_t first{0};  ///< The first and the last seq.
  std::int64_t last{0};
  std::string filter{};  ///< A filter of event/replay_filter.hpp, as JSON.
  /// Its events were copied into the store from an archive; otherwise they are read from the log.
  bool archived{false};
  ReplayState state{ReplayState::running};
  std::string actor{};   ///< Who started it.
  std::string reason{};  ///< Why it stopped.
  std::int64_t started_at_us{0};
  std::int64_t ended_at_us{0};  ///< 0 if it has not ended.
  // Its progress:
  std::int64_t position{0};  ///< The position of the lanes that are the furthest behind.
  std::int64_t sent{0};
  std::int64_t skipped{0};
};

/// An event that a replay did not send.
struct ReplaySkip {
  std::int64_t seq{0};
  EventId id{};
  std::string error{};  ///< Empty if it follows a skipped event of its key.
  // Set by the store: later events of this key are skipped, too.
  std::string aggregate_type{};
  std::string aggregate_id{};
};

/// What a replay did on some lanes, up to `position`; only their owner's generation counts.
struct ReplayProgress {
  std::int64_t replay{0};
  std::int32_t subscription{0};
  std::int64_t generation{0};
  LaneMask lanes{0};
  std::int64_t position{0};
  std::int64_t sent{0};
  std::vector<ReplaySkip> skips{};
};

/// Lanes on which a replay is at one position.
struct ReplayPlace {
  LaneMask lanes{0};
  std::int64_t position{0};
};

/// The next read of a replay, for lanes that share a live cursor and a position.
struct ReplayRequest {
  std::int64_t replay{0};
  std::int32_t subscription{0};
  bool archived{false};
  LaneMask lanes{kAllLanes};
  Cursor live{};  ///< Only events that this cursor has passed are sent again.
  std::int64_t position{0};
  std::int64_t last{0};
  std::size_t rows{1000};
  std::size_t bytes{std::size_t{4} << 20U};
  bool whole{true};  ///< Whether payloads are read.
};

/// Events that live delivery has passed, in the order of seq.
struct ReplayPage {
  std::vector<EventView> events{};
  /// For each event, whether it is not sent again: it is parked, discarded or corrected.
  std::vector<std::uint8_t> held{};
  std::int64_t position{0};  ///< Where the next page begins.
  bool ended{false};         ///< There are no more pages.
  std::size_t bytes{0};
  std::shared_ptr<const void> storage{};
};

/// Which part of the log retention has left.
struct RetainedLog {
  std::int64_t first{1};     ///< No event from this seq on was removed.
  bool removed{false};       ///< Whether earlier events were removed.
  std::int64_t first_us{0};  ///< The time of the first event; 0 if there is none.
  std::int64_t last{0};      ///< The newest seq.
};

/// It is used by one thread at a time.
class Replays : public Interface {
 public:
  [[nodiscard]] virtual Result<RetainedLog> retained() = 0;
  /// The first seq that was written at this time (microseconds since 1970, UTC) or later.
  [[nodiscard]] virtual Result<std::int64_t> seq_at(std::int64_t time_us) = 0;
  /// Starts a replay (as `loading` if it is archived) and returns its id. Fails while another
  /// replay of the subscription runs, and if `first` is not retained any more.
  [[nodiscard]] virtual Result<std::int64_t> start(const Replay& replay) = 0;
  /// Adds events to a replay that is loading, except those that the log still has or that it has
  /// already. Returns how many were added.
  [[nodiscard]] virtual Result<std::int64_t> load(std::int64_t replay,
                                                  std::span<const EventView> events) = 0;
  /// Ends the loading, so that relays begin to send. Only now it is recorded that a person has
  /// started the replay.
  [[nodiscard]] virtual Status loaded(std::int64_t replay) = 0;
  /// Stops a replay that is running, or removes one that is loading. Returns false in other states.
  /// Without a reason it is the command that loads the replay which gives it up: nothing was sent,
  /// and nothing is recorded.
  [[nodiscard]] virtual Result<bool> stop(std::int64_t replay, std::string_view reason) = 0;
  /// Resumes a replay that was stopped, under the conditions of start().
  [[nodiscard]] virtual Status resume(std::int64_t replay) = 0;
  /// At most `limit` replays, the newest first; `subscription` 0 selects those of all.
  [[nodiscard]] virtual Result<std::vector<Replay>> list(std::int32_t subscription,
                                                         std::size_t limit) = 0;
  [[nodiscard]] virtual Result<std::optional<Replay>> find(std::int64_t replay) = 0;
  /// The events that the replay did not send, in the order of seq.
  [[nodiscard]] virtual Result<std::vector<ReplaySkip>> skips(std::int64_t replay,
                                                              std::size_t limit) = 0;

  // For relays:

  /// The positions of these lanes. Lanes that have not begun are just before the first seq.
  [[nodiscard]] virtual Result<std::vector<ReplayPlace>> places(const Replay& replay,
                                                                LaneMask lanes) = 0;
  [[nodiscard]] virtual Result<ReplayPage> page(const ReplayRequest& request) = 0;
};

// Errors of both stores.
[[nodiscard]] tl::unexpected<Error> begins_too_early(std::int64_t first, const RetainedLog& log);
[[nodiscard]] tl::unexpected<Error> another_is_running();
[[nodiscard]] tl::unexpected<Error> not_stopped(std::int64_t replay);

/// Places each lane at the greatest position among the rows that have it, or else at `start`; lanes
/// at one position form one place.
[[nodiscard]] std::vector<ReplayPlace> resume_places(const std::vector<ReplayPlace>& rows,
                                                     std::int64_t start, LaneMask lanes);

}  // namespace outbox::store
