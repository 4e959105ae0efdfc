// Subscriptions: their state and progress, and the changes that people make to them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "store/interface.hpp"
#include "store/parked.hpp"

namespace outbox::store {

// ---- Subscriptions and relays, for people and for the relay.

/// Stored as text: the words are frozen.
enum class SubscriptionState : std::uint8_t { active, paused, stopped };
[[nodiscard]] const char* to_string(SubscriptionState state) noexcept;

struct SubscriptionRow {
  std::int32_t id{0};
  SubscriptionSpec spec;
  std::int32_t config_version{1};
  SubscriptionState state{SubscriptionState::active};
  std::string reason;                       ///< Why it is paused or stopped.
  std::optional<std::int64_t> stopped_seq;  ///< The seq of the event that stopped it.
  std::string stopped_event;                ///< The id of that event.
  std::string trouble;        ///< Why it makes no progress while active; empty: unknown or none.
  std::string trouble_since;  ///< RFC 3339.
  std::optional<EventId> trouble_relay;  ///< The relay that reported the trouble.
  std::string group;                     ///< The group whose relays deliver it.
  /// Ownership of the group's lanes counts only from this one on.
  std::int64_t group_generation{0};
  std::int32_t parked_version{0};  ///< Grows when a person changes parked events.
  std::int64_t replay{0};          ///< The replay that is running; 0: none.
  /// For a queue, sorted: the types with subscriptions of their own (event/task_queue.hpp), and
  /// which of these types are not active.
  std::vector<std::string> left_out{};
  std::vector<std::string> paused_types{};
};

/// How far a subscription is, for `status`.
struct SubscriptionProgress {
  std::int32_t id{0};
  std::int64_t generation{0};
  /// Events of all types that are committed but not settled; at most `pending_limit`.
  std::int64_t pending{0};
  bool pending_capped{false};        ///< There are more than `pending_limit`.
  std::string oldest_pending_at;     ///< created_at of the oldest of them, RFC 3339; empty: none.
  std::chrono::microseconds lag{0};  ///< The age of that event, by the store's clock.
  // Totals that add_totals() sets. What a relay settled after it lost its lanes is not included.
  std::int64_t acked{0};
  std::int64_t filtered{0};
  std::string last_settled_at;  ///< RFC 3339; empty: never.

  /// The filter has matched none of many events, which is probably a mistake.
  [[nodiscard]] bool matches_nothing() const noexcept {
    return acked == 0 && filtered >= kManyFiltered;
  }
  static constexpr std::int64_t kManyFiltered = 1000;

  /// The stores count up to one more than the limit, to know whether there are more.
  void cap_pending(std::int64_t limit) noexcept {
    pending_capped = pending > limit;
    pending = std::min(pending, limit);
  }
};

/// A subscription with its progress and its parked events.
struct SubscriptionOverview {
  SubscriptionRow row;
  SubscriptionProgress progress;  ///< Includes the totals.
  ParkedCounts parked;
};

struct RelayRow {
  std::string id;
  std::string name;
  bool owner{false};
  bool alive{false};
  std::int64_t generation{0};
  std::string heartbeat_at;
  std::string lanes{};  ///< The lanes that it owns: "default 32, heavy 64".
};

/// One thread at a time.
class Catalog : public Interface {
 public:
  /// The random name that migrate() gave this outbox; recreated tables or files get a new one.
  [[nodiscard]] virtual Result<std::string> identity() = 0;
  [[nodiscard]] virtual Result<std::vector<SubscriptionRow>> subscriptions() = 0;
  /// Creates the subscription with its first cursor row, or changes it (config_version grows), in
  /// one transaction. True if anything changed. The `start` of an existing subscription is ignored.
  [[nodiscard]] virtual Result<bool> apply(const SubscriptionSpec& spec) = 0;
  /// Only creates. A former name of another subscription is allowed, and forgotten as such.
  [[nodiscard]] virtual Status create(const SubscriptionSpec& spec) = 0;
  /// Pauses an active subscription; a stopped one stays stopped and keeps its reason.
  [[nodiscard]] virtual Status pause(std::string_view name, std::string_view reason) = 0;
  [[nodiscard]] virtual Status resume(std::string_view name) = 0;

  // For the relay. The next two act only while the lanes are owned under this generation, so that a
  // relay that was taken for dead cannot stop what its successor delivers.

  /// Stops the subscription until resume(), because an event was rejected; nothing is skipped. Does
  /// not wait for locks. False: a lock is held, or the subscription or the generation is gone.
  [[nodiscard]] virtual Result<bool> stop(std::int32_t id, std::int64_t generation,
                                          std::string_view reason, std::int64_t seq,
                                          const EventId& event) = 0;
  /// Records why an active subscription makes no progress, or, if `trouble` is empty, that it does;
  /// while the relay that reported the trouble lives, only that relay may clear it. Does not wait
  /// for locks: the relay compares the record with its own state and reports again.
  [[nodiscard]] virtual Status report_trouble(std::int32_t id, std::int64_t generation,
                                              std::string_view trouble, const EventId& relay) = 0;

  [[nodiscard]] virtual Result<SubscriptionProgress> progress(const SubscriptionRow& subscription,
                                                              std::int64_t pending_limit) = 0;
  /// Adds the totals, which the newest settlement carries.
  [[nodiscard]] virtual Status add_totals(SubscriptionProgress& progress) = 0;
  /// Rows, progress with totals, and parked events of all subscriptions, in few round trips.
  [[nodiscard]] virtual Result<std::vector<SubscriptionOverview>> overview(
      std::int64_t pending_limit) = 0;
  [[nodiscard]] virtual Result<std::vector<RelayRow>> relays() = 0;
};

// ---- Renaming, resetting and dropping subscriptions, for people (docs/design/subscriptions.md).
// Relays follow within a second.

/// Where a subscription that is reset begins.
struct NewStart {
  enum class Kind : std::uint8_t { beginning, now, after };
  Kind kind{Kind::beginning};
  std::int64_t after{0};  ///< Events up to this seq are not sent.
};

/// Events of one type, and what a new start does to them.
struct ResetCount {
  std::string aggregate_type;
  std::string event_type;
  std::string headers;      ///< Empty unless they were asked for.
  std::int64_t again{0};    ///< Already passed; sent again if they match.
  std::int64_t skipped{0};  ///< Not passed yet, and never to be sent.
};

struct ResetPlan {
  std::vector<ResetCount> counts{};
  // Of events that were parked:
  std::int64_t parked_again{0};     ///< Parked now; removed, and sent again from the log.
  std::int64_t corrected_again{0};  ///< How many of `parked_again` a person has corrected.
  std::int64_t discarded_again{0};  ///< Discarded before; sent again.
  std::int64_t parked_kept{0};      ///< Parked now; remain parked.
};

struct FormerName {
  std::string name;
  std::string subscription;  ///< Its present name.
};

/// One thread at a time. Each change is one transaction.
class SubscriptionChanges : public Interface {
 public:
  [[nodiscard]] virtual Result<std::vector<FormerName>> former_names() = 0;
  /// Changes the name only: position, parked events, ledger and replays stay.
  [[nodiscard]] virtual Status rename(std::string_view name, std::string_view new_name) = 0;
  /// Changes nothing. `with_headers` counts events with different headers separately.
  [[nodiscard]] virtual Result<ResetPlan> plan_reset(std::string_view name, const NewStart& start,
                                                     bool with_headers) = 0;
  /// Fails while a replay of the subscription is loading or running, as does drop().
  [[nodiscard]] virtual Status reset(std::string_view name, const NewStart& start) = 0;
  /// Removes the subscription with its parked events.
  [[nodiscard]] virtual Status drop(std::string_view name) = 0;
};

/// Errors of both stores.
[[nodiscard]] tl::unexpected<Error> replay_runs(std::string_view name);
[[nodiscard]] tl::unexpected<Error> name_taken(std::string_view name);
/// The configuration under the new name, if the subscription may have this name.
[[nodiscard]] Result<SubscriptionSpec> renamed_spec(std::string_view name, std::string_view config,
                                                    std::string_view new_name);

// ---- Former names of renamed subscriptions, which Catalog::apply() refuses
// (docs/design/subscriptions.md).

/// The error that `name` is now called `now`.
[[nodiscard]] Error renamed(std::string_view name, std::string_view now);
[[nodiscard]] bool is_renamed(const Error& error) noexcept;

}  // namespace outbox::store
