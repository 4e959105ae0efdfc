// Subscriptions and relays, for people and for the relay's keeper.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "store/parked_events.hpp"
#include "store/part.hpp"

namespace outbox::store {

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
  std::string stopped_event;                ///< Its id.
  std::string trouble;        ///< Why it makes no progress while active; empty: unknown or none.
  std::string trouble_since;  ///< RFC 3339.
  std::optional<EventId> trouble_relay;  ///< Which relay said so.
  std::string group;                     ///< Whose relays deliver it.
  std::int64_t group_generation{0};  ///< Only ownership of the group's lanes after this one counts.
  std::int32_t parked_version{0};    ///< Grows when a person changes parked events.
  std::int64_t replay{0};            ///< The one that is running; 0: none.
  /// Of a queue: the types that have a subscription of their own (event/task_queue.hpp), and those of them that are not active. Sorted.
  std::vector<std::string> left_out{};
  std::vector<std::string> paused_types{};
};

/// How far a subscription is, for `status`.
struct SubscriptionProgress {
  std::int32_t id{0};
  std::int64_t generation{0};
  /// Events committed and not settled, of all types, at most `pending_limit`.
  std::int64_t pending{0};
  bool pending_capped{false};        ///< More than `pending_limit`.
  std::string oldest_pending_at;     ///< created_at of the oldest of them, RFC 3339; empty: none.
  std::chrono::microseconds lag{0};  ///< The age of that event, by the store's clock.
  // Set by add_totals(). Since the beginning, without what a relay settled after it lost its lanes.
  std::int64_t acked{0};
  std::int64_t filtered{0};
  std::string last_settled_at;  ///< RFC 3339; empty: never.

  /// The filter matched none of many events, which is probably a mistake.
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
  std::string lanes{};  ///< What it owns: "default 32, heavy 64".
};

/// One thread at a time.
class Catalog : public Part {
 public:
  /// The random name that migrate() gave this outbox. Recreated tables or files have another one.
  [[nodiscard]] virtual Result<std::string> identity() = 0;
  [[nodiscard]] virtual Result<std::vector<SubscriptionRow>> subscriptions() = 0;
  /// Creates it with its first cursor row, or changes it (config_version grows), in one transaction. True: something
  /// changed. The `start` of an existing subscription is ignored.
  [[nodiscard]] virtual Result<bool> apply(const SubscriptionSpec& spec) = 0;
  /// Creates it only, also under a name that another one had before, which is forgotten in the same transaction.
  [[nodiscard]] virtual Status create(const SubscriptionSpec& spec) = 0;
  /// A stopped one stays stopped, with its reason.
  [[nodiscard]] virtual Status pause(std::string_view name, std::string_view reason) = 0;
  [[nodiscard]] virtual Status resume(std::string_view name) = 0;

  // For the relay. These two have an effect only while the lanes are owned under this generation: a relay that was thought
  // dead must not stop what its successor delivers.

  /// An event was rejected. Nothing is skipped; the subscription waits for resume. Does not wait for locks. False: another
  /// transaction holds one, the subscription is gone, or the generation is over.
  [[nodiscard]] virtual Result<bool> stop(std::int32_t id, std::int64_t generation,
                                          std::string_view reason, std::int64_t seq,
                                          const EventId& event) = 0;
  /// Records why an active subscription makes no progress; empty: it does again, which only the relay that reported the trouble may
  /// say while it lives. Does not wait for locks: the relay compares the record with its own state and reports again.
  [[nodiscard]] virtual Status report_trouble(std::int32_t id, std::int64_t generation,
                                              std::string_view trouble, const EventId& relay) = 0;

  [[nodiscard]] virtual Result<SubscriptionProgress> progress(const SubscriptionRow& subscription,
                                                              std::int64_t pending_limit) = 0;
  /// From the newest settlement, which carries them.
  [[nodiscard]] virtual Status add_totals(SubscriptionProgress& progress) = 0;
  /// All of that for every subscription, in few round trips.
  [[nodiscard]] virtual Result<std::vector<SubscriptionOverview>> overview(
      std::int64_t pending_limit) = 0;
  [[nodiscard]] virtual Result<std::vector<RelayRow>> relays() = 0;
};

}  // namespace outbox::store
