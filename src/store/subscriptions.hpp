// Subscriptions: what they are and how far, and what people change of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/interface.hpp"
#include "store/parked.hpp"

namespace outbox::store {

// ---- Subscriptions and relays, for people and for the relay's tenure loop.

/// Stored as text; the words are frozen.
enum class SubscriptionState : std::uint8_t { active, paused, stopped };
[[nodiscard]] const char* to_string(SubscriptionState state) noexcept;

struct SubscriptionRow {
  std::int32_t id{0};
  SubscriptionSpec spec;
  std::int32_t config_version{1};
  SubscriptionState state{SubscriptionState::active};
  std::string reason;                       ///< Why it is paused or stopped.
  std::optional<std::int64_t> stopped_seq;  ///< The event that stopped it.
  std::string stopped_event;                ///< The id of that event.
  std::string trouble;  ///< Why it makes no progress while active; empty if unknown, or if it makes
                        ///< progress.
  std::string trouble_since;             ///< RFC 3339.
  std::optional<EventId> trouble_relay;  ///< The relay that reported the trouble.
  std::string group;                     ///< The group whose relays deliver it.
  std::int64_t group_generation{0};  ///< Only ownership of the group's lanes after this one counts.
  std::int32_t parked_version{0};    ///< Grows when a person changes parked events.
  std::int64_t replay{0};            ///< The replay that is running; 0 if there is none.
  /// For a queue: the types that have a subscription of their own (event/task_queue.hpp), and those
  /// of them that are not active. Both are sorted.
  std::vector<std::string> left_out{};
  std::vector<std::string> paused_types{};
};

/// How far a subscription is, for `status`.
struct SubscriptionProgress {
  std::int32_t id{0};
  std::int64_t generation{0};
  /// The number of events of all types that are committed and not settled, at most `pending_limit`.
  std::int64_t pending{0};
  bool pending_capped{false};        ///< There are more than `pending_limit`.
  std::string oldest_pending_at;     ///< The created_at of the oldest of them, RFC 3339; empty if
                                     ///< there is none.
  std::chrono::microseconds lag{0};  ///< The age of that event, by the store's clock.
  // add_totals() sets these. They count from the beginning, without what a relay settled after it
  // lost its lanes.
  std::int64_t acked{0};
  std::int64_t filtered{0};
  std::string last_settled_at;  ///< RFC 3339; empty if nothing was settled.

  /// Whether the filter matched none of many events, which is probably a mistake.
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

/// A subscription, what it has done, and its parked events.
struct SubscriptionOverview {
  SubscriptionRow row;
  SubscriptionProgress progress;  ///< With the totals.
  ParkedCounts parked;
};

struct RelayRow {
  std::string id;
  std::string name;
  bool owner{false};
  bool alive{false};
  std::int64_t generation{0};
  std::string heartbeat_at;
  std::map<std::string, std::int64_t> lanes{};  ///< How many lanes it owns, by group.
  std::string feed{"poll"};    ///< How it learns of new events at the moment: "poll" or "wal".
  std::string feed_trouble{};  ///< Why it polls, if it is to follow the store's log.
};

/// How large a store is and how far it reaches, for metrics. Times: microseconds since 1970, UTC.
struct StoreFigures {
  /// Bytes by what is in the tables: events, progress, parked and rest; of SQLite the whole file.
  std::vector<std::pair<std::string, std::int64_t>> bytes{};
  std::optional<std::int64_t> partitions_ahead{};  ///< Not set if the store has no partitions.
  std::optional<std::int64_t> oldest_event_us{};   ///< Of the log; not set if it is empty.
  /// When the oldest open transaction that this login sees began, if the store has snapshots.
  std::optional<std::int64_t> oldest_snapshot_us{};
  bool has_snapshots{false};
};

/// It is used by one thread at a time.
class Catalog : public Interface {
 public:
  /// The random name that migrate() gave this outbox. Recreated tables or files have another one.
  [[nodiscard]] virtual Result<std::string> identity() = 0;
  [[nodiscard]] virtual Result<std::vector<SubscriptionRow>> subscriptions() = 0;
  /// Creates the subscription with its first cursor row, or changes it (config_version grows), in
  /// one transaction. Returns whether something changed. The `start` of an existing subscription is
  /// ignored.
  [[nodiscard]] virtual Result<bool> apply(const SubscriptionSpec& spec) = 0;
  /// Only creates the subscription, also under a name that another one had before; the former name
  /// is forgotten in the same transaction.
  [[nodiscard]] virtual Status create(const SubscriptionSpec& spec) = 0;
  /// A stopped subscription stays stopped, with its reason.
  [[nodiscard]] virtual Status pause(std::string_view name, std::string_view reason) = 0;
  [[nodiscard]] virtual Status resume(std::string_view name) = 0;

  // For the relay. These two have an effect only while the lanes are owned under this generation: a
  // relay that was thought dead must not stop what its successor delivers.

  /// Stops the subscription because an event was rejected. Nothing is skipped; the subscription
  /// waits for resume(). This does not wait for locks: it returns false if another transaction
  /// holds one, the subscription is gone, or the generation is over.
  [[nodiscard]] virtual Result<bool> stop(std::int32_t id, std::int64_t generation,
                                          std::string_view reason, std::int64_t seq,
                                          const EventId& event) = 0;
  /// Records why an active subscription makes no progress. `trouble` is empty if it makes progress
  /// again, which only the relay that reported the trouble may say while it lives. This does not
  /// wait for locks: the relay compares the record with its own state and reports again.
  [[nodiscard]] virtual Status report_trouble(std::int32_t id, std::int64_t generation,
                                              std::string_view trouble, const EventId& relay) = 0;

  [[nodiscard]] virtual Result<SubscriptionProgress> progress(const SubscriptionRow& subscription,
                                                              std::int64_t pending_limit) = 0;
  /// Adds the totals, which are in the newest settlement.
  [[nodiscard]] virtual Status add_totals(SubscriptionProgress& progress) = 0;
  /// Reads all of this for every subscription, in few round trips.
  [[nodiscard]] virtual Result<std::vector<SubscriptionOverview>> overview(
      std::int64_t pending_limit) = 0;
  [[nodiscard]] virtual Result<std::vector<RelayRow>> relays() = 0;
  [[nodiscard]] virtual Result<StoreFigures> figures() = 0;
};

// ---- Renaming, resetting and dropping a subscription (docs/design/subscriptions.md). For people;
// relays follow within a second.

/// Where a subscription begins anew.
struct NewStart {
  enum class Kind : std::uint8_t { beginning, now, after };
  Kind kind{Kind::beginning};
  std::int64_t after{0};  ///< The events up to this seq are not sent.
  /// PostgreSQL: those of them that are not visible in this snapshot are sent. If it is empty,
  /// reset() takes one.
  std::string snapshot{};
  // With a snapshot: the value of the sequence, which was read after it, and the incarnation of the
  // server that it is of.
  std::int64_t bound{0};
  std::int64_t incarnation{0};
};

/// Events of one type, and what a new start does to them.
struct ResetCount {
  std::string aggregate_type;
  std::string event_type;
  std::string headers;      ///< Empty unless they were asked for.
  std::int64_t again{0};    ///< Events that were passed, and are sent again if they match.
  std::int64_t skipped{0};  ///< Events that were not passed yet, and are never sent.
};

struct ResetPlan {
  std::vector<ResetCount> counts{};
  // The numbers of events that were set aside:
  std::int64_t parked_again{0};     ///< Parked now; they are removed, and sent again from the log.
  std::int64_t corrected_again{0};  ///< Those of them whose copy a person has corrected.
  std::int64_t discarded_again{0};  ///< Discarded before; they are sent again.
  std::int64_t parked_kept{0};      ///< Parked now; they stay parked.
};

struct FormerName {
  std::string name;
  std::string subscription;  ///< Its present name.
};

/// It is used by one thread at a time. Each change is one transaction.
class SubscriptionChanges : public Interface {
 public:
  [[nodiscard]] virtual Result<std::vector<FormerName>> former_names() = 0;
  /// The subscription keeps everything that it has: position, parked events, ledger, replays.
  [[nodiscard]] virtual Status rename(std::string_view name, std::string_view new_name) = 0;
  /// Where the replication slot stands: what another program, which has stopped, has not confirmed
  /// to it is sent. Events of transactions that ran beside those may be sent, too.
  [[nodiscard]] virtual Result<NewStart> find_slot(std::string_view slot) = 0;
  /// Returns what reset() would do, and changes nothing. `with_headers` counts events with
  /// different headers apart.
  [[nodiscard]] virtual Result<ResetPlan> plan_reset(std::string_view name, const NewStart& start,
                                                     bool with_headers) = 0;
  /// Fails while a replay of the subscription is loading or running.
  [[nodiscard]] virtual Status reset(std::string_view name, const NewStart& start) = 0;
  /// Removes the subscription with its parked events. Fails as reset() does.
  [[nodiscard]] virtual Status drop(std::string_view name) = 0;
};

/// Errors of both stores.
[[nodiscard]] tl::unexpected<Error> replay_runs(std::string_view name);
[[nodiscard]] tl::unexpected<Error> name_taken(std::string_view name);
/// The spec of the renamed subscription, if it may have this name.
[[nodiscard]] Result<SubscriptionSpec> renamed_spec(std::string_view name, std::string_view config,
                                                    std::string_view new_name);

// ---- Names that a subscription had before it was renamed (docs/design/subscriptions.md).
// Catalog::apply() refuses them.

/// The error that the subscription `name` is now called `now`.
[[nodiscard]] Error renamed(std::string_view name, std::string_view now);
[[nodiscard]] bool is_renamed(const Error& error) noexcept;

}  // namespace outbox::store
